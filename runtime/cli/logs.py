"""What libraries log while jobs run, as single lines on stderr."""

from __future__ import annotations

import logging
import os
import re
from functools import cache

from runtime.cli.output import note
from runtime.cli.text import one_line

DEBUG = "HOLDFAST_DEBUG"
"""The environment variable that asks for tracebacks."""

_TOLD_ELSEWHERE = (
    # The command itself tells of activities that fail, with the job's name and the next attempt.
    "Completing activity as failed",
    # The SDK's Python half logs the same failure with its reason.
    "Failing workflow task",
    # Whoever asked a busy worker how far a job is has given up, and asks again.
    "Query not found when attempting to respond to it",
)
_FIELDS = re.compile(r" \(?\{'")
"""Where a message ends and the fields begin that the SDK appends: in parentheses by its Python half, bare by its core."""

_STOPPED = "InterpreterStopped"


class _Lines(logging.Handler):
    """A line for each record: the message, and the exception's own words instead of its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # Ctrl-C reaches the interpreter too: its statement runs again when the job is resumed.
        if record.getMessage().removeprefix("[").startswith(_TOLD_ELSEWHERE) or type(error).__name__ == _STOPPED:
            return
        message = _FIELDS.split(record.getMessage(), maxsplit=1)[0]
        what = f": {type(error).__name__}: {error}" if error is not None else ""
        note(f"{record.levelname.lower()}: {one_line(message + what)}")


@cache
def log_in_lines() -> None:
    """Log warnings and errors of every library as single lines, or in full where ``HOLDFAST_DEBUG`` is set."""
    if os.environ.get(DEBUG):
        logging.basicConfig(level=logging.WARNING)
        return
    logging.basicConfig(level=logging.WARNING, handlers=[_Lines()])
    _forward_core()


def _forward_core() -> None:
    """What the SDK's Rust half logs goes the same way; it would write to the terminal by itself."""
    from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"), prepend_target_on_message=False)
    logged = LoggingConfig(filter=TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding=forwarding)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logged)), error_if_already_set=False)
