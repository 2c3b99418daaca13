"""What is logged while jobs run: all of it in the state directory's log, what a user has to know as
single lines on stderr.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from io import TextIOWrapper
from os.path import samestat
from pathlib import Path

from runtime.base.controls import clean
from runtime.base.errors import InputError
from runtime.base.home import state_home
from runtime.base.trace_ids import trace_id
from runtime.cli.output import note, own_stderr, own_stdout
from runtime.cli.telemetry import begin_traces, exporter, metrics_address
from runtime.cli.text import one_line, shortened

DEBUG = "HOLDFAST_DEBUG"
"""The environment variable that asks for tracebacks; ``0`` does not."""

LOG = "HOLDFAST_LOG"
"""The environment variable that says how logs are written: ``text``, or ``json``."""

_TOLD_ELSEWHERE = (
    # The command itself tells of activities that fail, with the job's name and the next attempt.
    "Completing activity as failed",
    # The SDK's Python half logs the same failure with its reason.
    "Failing workflow task",
    # Whoever asked a busy worker how far a job is has given up, and asks again.
    "Query not found when attempting to respond to it",
)
_FIELDS = re.compile(r" \(?\{'")
"""Where a message ends and the fields begin that the SDK appends: in parentheses by its Python
half, bare by its core.
"""

_DROPPED = re.compile(
    r"Failed deserializing signal input for (.+) on workflow \S+ with ID (.+) and run ID"
)
"""What the SDK says, with a stack, of a signal whose payloads cannot be read: anybody who reaches
the server can send one.
"""

_CORE = "temporalio.core"
"""What the SDK's Rust half logs to."""

_STOPPED = "InterpreterStopped"

_OURS = (
    "holdfast",
    "runtime",
    "activities",
    "workflows",
    "temporalio.workflow",
    "temporalio.activity",
)
"""Loggers that speak for Holdfast: its modules, and what workflow code and activities log through
the SDK.
"""

MOST_MESSAGE = 2_000
"""Characters of a message in a JSON object: the SDK's core puts whole stacks there."""

_NOT_SENT = "opentelemetry."
"""The library that sends traces: that it cannot is told once by who uses it, and not with each
batch of spans.
"""

LOG_BYTES = 10_000_000
"""A log larger than this gives way to a new one when a command begins, or logs; the one before is
kept.
"""


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether a user has to know: what Holdfast says, errors, and failures; not what a library is
    merely worried about.
    """
    if record.name.startswith(_NOT_SENT):
        return False
    ours = any(record.name == name or record.name.startswith(f"{name}.") for name in _OURS)
    return ours or record.levelno >= logging.ERROR or record.exc_info is not None


def _told(record: logging.LogRecord) -> tuple[str, str, str]:
    """The level of a record, its message, and the exception that it is of; empty for none."""
    error = record.exc_info[1] if record.exc_info else None
    message = _FIELDS.split(record.getMessage(), maxsplit=1)[0]
    if (dropped := _DROPPED.match(message)) is not None:
        # Its first line: of a value that does not fit, others follow, which quote it.
        why = next(iter(str(getattr(error, "message", error)).splitlines()), "")
        # As ``workflows.doors`` has it of those that can be read.
        return "warning", f"dropped the signal {dropped[1]!r} of {dropped[2]}", why
    what = f"{type(error).__name__}: {error}" if error is not None else ""
    return record.levelname.lower(), message, what


def is_debugging() -> bool:
    """Whether all is to be shown, with tracebacks."""
    return os.environ.get(DEBUG, "") not in {"", "0"}


class _Lines(logging.Handler):
    """A line for each record: the message, and the exception's own words instead of its
    traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(_is_for_users)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # Ctrl-C reaches the interpreter too: its statement runs again when the job is resumed.
        if (
            record.getMessage().removeprefix("[").startswith(_TOLD_ELSEWHERE)
            or type(error).__name__ == _STOPPED
        ):
            return
        level, message, what = _told(record)
        note(f"{level}: {one_line(f'{message}: {what}' if what else message)}")


class _Documents(logging.Handler):
    """A JSON object for each record, on stderr: for collectors of logs.

    ``job``, ``activity`` (``turn-41-effect-0``), ``turn`` (41) and ``attempt`` are there where the
    SDK tells them, the trace of the run if ``traced``.
    """

    def __init__(self, *, traced: bool) -> None:
        super().__init__()
        self.addFilter(_is_for_users)
        self._traced = traced

    def emit(self, record: logging.LogRecord) -> None:
        level, message, what = _told(record)
        # The SDK adds one of the two, by who speaks.
        told = getattr(record, "temporal_activity", None) or getattr(
            record, "temporal_workflow", None
        )
        about = told if isinstance(told, dict) else {}
        # Activities and workflows have other names for it.
        run = about.get("workflow_run_id") or about.get("run_id")
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": level,
            "logger": record.name,
            "message": shortened(message, MOST_MESSAGE),
            "error": what or None,
            "job": str(about.get("workflow_id", "")).removeprefix("holdfast/") or None,
            "run": run,
            "trace_id": trace_id(str(run)) if run and self._traced else None,
            "activity": about.get("activity_id"),
            "turn": _turn(str(about.get("activity_id"))),
            "attempt": about.get("attempt"),
            "process": record.process,
        }
        note(json.dumps({name: value for name, value in fields.items() if value is not None}))


def _turn(activity: str) -> int | None:
    """The turn that an activity is of, by its id."""
    named = re.match(r"turn-(\d+)", activity)
    return None if named is None else int(named[1])


class _PrivateFile(logging.FileHandler):
    """The state directory's log, made at the first record: most commands log nothing, and one that
    is refused leaves nothing behind.
    """

    def __init__(self) -> None:
        # Where it is, is asked again as it is opened: that makes it.
        super().__init__(os.devnull, encoding="utf-8", errors="backslashreplace", delay=True)
        self._told = False

    def _open(self) -> TextIOWrapper:
        try:
            self.baseFilename = str(_log_file())
            return super()._open()
        # A warning that cannot be logged is no reason for a job to fail.
        except (InputError, OSError) as error:
            note(f"what libraries warn of is not logged: {error}")
            self.baseFilename = os.devnull
            return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``. A worker may log for weeks."""
        if self.stream is not None and _is_over(self.stream, self.baseFilename):
            with suppress(OSError):
                self.stream.close()
            # Opened again where it is to be.
            self.stream = None
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Say once that the log cannot be written, as on a full disk: Python's own way is a
        traceback for each record.
        """
        if not self._told:
            self._told = True
            note(f"what libraries warn of is not logged: {sys.exc_info()[1]}")


def _is_over(log: TextIOWrapper, path: str) -> bool:
    """Whether a log that is open is too large, or is no longer at its ``path``: another process has
    moved it, or somebody removed it.
    """
    opened = os.fstat(log.fileno())
    try:
        return opened.st_size > LOG_BYTES or not samestat(opened, Path(path).stat())
    except OSError:
        return True


@cache
def log_in_lines(metrics: str | None = None) -> None:
    """Log warnings and errors to the state directory's log, and what users have to know of them as
    single lines too, or as JSON objects where ``HOLDFAST_LOG`` is ``json``.

    Where ``HOLDFAST_DEBUG`` asks for it, all goes to stderr, in full. Metrics are served at the
    address ``metrics``, else at that of ``HOLDFAST_METRICS``: logs and metrics are two halves of
    one setting of the SDK's. Traces are sent to ``HOLDFAST_TRACES``.

    Raises:
        InputError: if a variable or the address is wrong, or the address is taken.
    """
    address, traced = metrics_address(metrics), begin_traces()
    if is_debugging():
        handler = logging.StreamHandler()
        handler.setFormatter(_Clean(logging.BASIC_FORMAT))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
        if address is not None:
            _configure_core(None, address)
        return
    logging.basicConfig(level=logging.WARNING, handlers=[_shown(traced=traced), _file()])
    _configure_core(logging.getLogger(_CORE), address)


@cache
def log_core() -> None:
    """Log what the SDK's Rust half warns of to the state directory's log alone: by itself it writes
    to stdout, between a command's results. The SDK hands its records over after some milliseconds;
    those of a process's last ones are lost.

    Changes nothing where ``log_in_lines`` said where it goes, or ``HOLDFAST_DEBUG`` asks for all.
    """
    if log_in_lines.cache_info().currsize or is_debugging():
        return
    logger = logging.getLogger(_CORE)
    logger.addHandler(_file())
    logger.propagate = False
    _configure_core(logger, None)


class _Clean(logging.Formatter):
    """A record in full, without what a terminal obeys: whoever looks into the log has it printed,
    and endpoints, tools and models have words in it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """With the record's traceback."""
        return clean(super().format(record))


def _file() -> _PrivateFile:
    file = _PrivateFile()
    file.setFormatter(_Clean("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    return file


def _shown(*, traced: bool) -> logging.Handler:
    form = os.environ.get(LOG, "")
    if form not in {"", "json", "text"}:
        raise InputError(f"{LOG} {form!r}: expected json or text")
    return _Documents(traced=traced) if form == "json" else _Lines()


@contextmanager
def own_terminal() -> Iterator[None]:
    """Keeps stdout for what commands print, and a terminal's stderr likewise: others' words go to
    stderr, or to the log.
    """
    with own_stdout():
        if not sys.stderr.isatty() or is_debugging():
            yield
            return
        with own_stderr(_log_file()):
            yield


def _log_file() -> Path:
    """The log, private to its owner and not too large."""
    path = state_home().messages
    if path.exists() and path.stat().st_size > LOG_BYTES:
        _move(path)
    # Made here, since a logging handler would make it as the process's mask has it.
    path.touch(mode=0o600)
    return path


def _move(log: Path) -> None:
    """Move a log that is too large, unless another process does: all find it so at one time."""
    with suppress(FileNotFoundError), log.open("rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        if samestat(os.fstat(opened.fileno()), log.stat()):
            log.replace(log.with_name(log.name + ".1"))


def _configure_core(logger: logging.Logger | None, metrics: str | None) -> None:
    """What the SDK's Rust half logs goes to ``logger``; it would write to the terminal by itself.

    Raises:
        InputError: if the address of ``metrics`` cannot be had.
    """
    from temporalio.runtime import (
        LogForwardingConfig,
        LoggingConfig,
        Runtime,
        TelemetryConfig,
        TelemetryFilter,
    )

    logged = LoggingConfig.default
    if logger is not None:
        logged = LoggingConfig(
            filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
            forwarding=LogForwardingConfig(logger=logger, prepend_target_on_message=False),
        )
    served = exporter(metrics) if metrics is not None else None
    try:
        runtime = Runtime(telemetry=TelemetryConfig(logging=logged, metrics=served))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"metrics cannot be served at {metrics}: {error}") from error
    Runtime.set_default(runtime, error_if_already_set=False)
