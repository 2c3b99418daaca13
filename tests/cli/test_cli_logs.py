"""What libraries log while jobs run."""

import fcntl
import json
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from runtime.cli import logs
from runtime.cli.logs import _Documents, _file, _Lines, _PrivateFile
from tests.cli.refusing import refusing
from tests.cli.terminal import on_a_terminal
from tests.kill.processes import wait_for


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Worker is slow {'error': 'Status { code: NotFound }'}", "warning: Worker is slow\n"),
        ("Worker is slow ({'attempt': 1})", "warning: Worker is slow\n"),
        ("Worker is\nslow \x1b[31m", "warning: Worker is slow\n"),
        (
            (
                "Query not found when attempting to respond to it {'error': 'Status { code:"
                " NotFound }'}"
            ),
            "",
        ),
        ("Completing activity as failed ({'activity_id': 'turn-1'})", ""),
    ],
)
def test_a_record_is_a_line_without_its_fields(
    message: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning is one line on stderr; what the command tells by itself, or what mends itself, is
    none.
    """
    _Lines().handle(_record("runtime.worker.presence", message))
    assert capsys.readouterr() == ("", told)


def test_a_signal_that_is_dropped_is_a_line_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """The SDK tells of one that cannot be read as an error, at length; anybody can send one."""
    words = (
        "Failed deserializing signal input for message on workflow JobWorkflow with ID holdfast/b/a"
        " and run ID 01a2, dropping the signal"
    )
    error = ApplicationError("is not signed\nin any line", type="NotSigned")
    record = _record(
        "temporalio.worker._workflow_instance",
        words,
        logging.ERROR,
        exc_info=(type(error), error, None),
    )
    _Lines().handle(record)
    line = "dropped the signal 'message' of holdfast/b/a"
    assert capsys.readouterr().err == f"warning: {line}: is not signed\n"
    _Documents(traced=False).handle(record)
    told = json.loads(capsys.readouterr().err)
    assert (told["level"], told["message"], told["error"]) == ("warning", line, "is not signed")


def _record(
    name: str, message: str, level: int = logging.WARNING, **more: object
) -> logging.LogRecord:
    fields = {
        "name": name,
        "msg": message,
        "levelno": level,
        "levelname": logging.getLevelName(level),
    }
    return logging.makeLogRecord({**fields, **more})


def test_what_a_library_worries_about_is_for_the_log_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Warnings of libraries are no lines; errors, failures, and what Holdfast says through the SDK
    are.
    """
    failure = ValueError("no way")
    lines = _Lines()
    for name in (
        "LiteLLM",
        "asyncio",
        "temporalio.core",
        "temporalio.worker._activity",
        "runtimes",
    ):
        lines.handle(_record(name, "worried"))
    assert capsys.readouterr() == ("", "")
    lines.handle(_record("asyncio", "broken", logging.ERROR))
    lines.handle(_record("temporalio.worker", "failed", exc_info=(ValueError, failure, None)))
    lines.handle(_record("temporalio.workflow", "dropped a signal"))
    assert (
        capsys.readouterr().err
        == "error: broken\nwarning: failed: ValueError: no way\nwarning: dropped a signal\n"
    )


_NOISY = """
import logging, os, sys, warnings
from runtime.cli.logs import log_in_lines, own_terminal
from runtime.cli.output import note, say
with own_terminal():
    log_in_lines()
    print("a tool")
    os.write(2, b"monty worker: allocation of 99 bytes exceeds the memory limit\\n")
    logging.getLogger("LiteLLM").warning("a worry")
    note("a note")
    say("a line")
"""


@pytest.mark.slow
def test_a_terminal_shows_nothing_of_others(tmp_path: Path) -> None:
    """On a terminal, what tools, libraries and child processes write is in the log, which is
    private, and not on the screen.
    """
    code, written = on_a_terminal(
        [sys.executable, "-c", _NOISY], tmp_path, {"HOLDFAST_HOME": str(tmp_path)}
    )
    assert (code, written) == (0, "a note\na line\n")
    log = tmp_path / "holdfast.log"
    told = log.read_text()
    assert "a tool\n" in told
    assert "monty worker: allocation of 99 bytes exceeds the memory limit\n" in told
    assert told.splitlines()[-1].endswith("WARNING LiteLLM: a worry")
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_log_has_nothing_that_a_terminal_obeys() -> None:
    """An endpoint's words are in it, in full, with the traceback, and somebody looks into it."""
    try:
        raise ValueError("said \x1b]52;c;ZXZpbA==\x07this\x1b[2J\u202e")
    except ValueError as error:
        failed = (ValueError, error, error.__traceback__)
    told = _file().format(_record("temporalio.activity", "failed\x9b31m", exc_info=failed))
    assert "WARNING temporalio.activity: failed\n" in told
    assert told.endswith("ValueError: said 52;c;ZXZpbA==this")


_UNLOGGED = """
import logging
from runtime.cli.logs import log_in_lines
log_in_lines()
logging.getLogger("LiteLLM").warning("a worry")
logging.getLogger("holdfast").warning("a warning")
"""


def test_a_log_that_cannot_be_made_is_told_and_stops_nothing(tmp_path: Path) -> None:
    """Where the state directory cannot be made, a line says so, and the work goes on."""
    home = tmp_path / "file" / "home"
    home.parent.write_text("in the way")
    ended = subprocess.run(
        [sys.executable, "-c", _UNLOGGED],
        env={**os.environ, "HOLDFAST_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0
    told = ended.stderr.splitlines()
    assert told == [
        f"what libraries warn of is not logged: the state directory {home} cannot be made:"
        " Not a directory; set HOLDFAST_HOME",
        "warning: a warning",
    ]


_IMPATIENT = """
import functools, sys
from temporalio.client import Client
from temporalio.service import RetryConfig
Client.connect = functools.partial(
    Client.connect, retry_config=RetryConfig(initial_interval_millis=1, max_interval_millis=1)
)
from holdfast.program import entry
try:
    entry()
finally:
    sys.stdin.read()
"""
"""The program, which asks a server again at once, and does not end before its stdin: the SDK hands
over what its core logged some milliseconds later, or not at all where the process has ended.
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [["pause", "b/j"], ["send", "b/j", "Hello."]])
def test_what_the_core_logs_of_a_server_is_for_the_log_alone(
    command: list[str], tmp_path: Path
) -> None:
    """Of a server that answers calls with an error, the SDK's Rust half says nothing where a
    command prints its results.
    """
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    log = home / "holdfast.log"
    with (
        refusing(after=2) as address,
        subprocess.Popen(
            [sys.executable, "-c", _IMPATIENT, *command, "--address", address],
            env={**os.environ, "HOLDFAST_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            wait_for(
                lambda: log.exists() and "retried 5 times" in log.read_text(),
                "the core's warning is in the log",
                alive=process,
            )
        finally:
            told, noted = process.communicate(timeout=120)
    assert (process.returncode, told) == (1, "")
    assert len(noted.splitlines()) == 1
    assert noted.endswith(" does not answer: UNAVAILABLE\n")
    assert " WARNING temporalio.core" in log.read_text()


def test_a_log_on_a_full_disk_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback for each record, which is Python's own way."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    (tmp_path / "holdfast.log").symlink_to("/dev/full")
    file = _PrivateFile()
    for _ in range(3):
        file.handle(_record("LiteLLM", "a worry"))
    # What it still has: Python 3.13 warns of a file that cannot be written when it is forgotten.
    with pytest.raises(OSError, match="No space left"):
        file.close()
    told = capsys.readouterr().err
    assert told == "what libraries warn of is not logged: [Errno 28] No space left on device\n"


def test_a_log_gives_way_to_a_new_one_while_workers_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker logs for weeks: what was moved by it, or by another process, is written no more, and
    the one before is kept.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr(logs, "LOG_BYTES", 10)
    log, before = tmp_path / "holdfast.log", tmp_path / "holdfast.log.1"
    one, other = _PrivateFile(), _PrivateFile()

    def write(by: _PrivateFile, worry: str) -> tuple[str, str]:
        by.handle(_record("LiteLLM", worry))
        return before.read_text() if before.exists() else "", log.read_text()

    assert write(one, "one") == ("", "one\n")
    assert write(other, "and another") == ("", "one\nand another\n")
    assert write(one, "new") == ("one\nand another\n", "new\n")
    assert write(other, "too") == ("one\nand another\n", "new\ntoo\n")
    log.unlink()
    assert write(one, "after") == ("one\nand another\n", "after\n")
    assert (log.stat().st_mode & 0o777, before.stat().st_mode & 0o777) == (0o600, 0o600)
    one.close()
    other.close()


def test_a_log_that_another_process_has_moved_is_not_moved_again(tmp_path: Path) -> None:
    """All find it too large at one time, and the second would put the new one in the place of the
    one before.
    """
    log, before = tmp_path / "holdfast.log", tmp_path / "holdfast.log.1"
    log.write_text("before")
    with ThreadPoolExecutor() as second, log.open("rb") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        moving = second.submit(logs._move, log)
        wait_for(lambda: _open_here(log) == 2, "the second to have it open")
        log.rename(before)
        log.write_text("new")
        fcntl.flock(first, fcntl.LOCK_UN)
        moving.result()
    assert (before.read_text(), log.read_text()) == ("before", "new")


def _open_here(path: Path) -> int:
    return sum(str(path) == os.path.realpath(file) for file in Path("/proc/self/fd").iterdir())
