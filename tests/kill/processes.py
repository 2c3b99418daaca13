"""The processes of a kill test: found by their state directory, started alike, and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from runtime.base.home import Home
from runtime.server.process import is_alive, read_info
from tests.eventually import pause_after

ROOT = Path(__file__).parents[2]
DEADLINE = 600.0
"""Seconds after which a condition that never comes true fails a test, or a command that does not
end: at a load of 47 on two cores, a job that runs a package's tests needed more than 240.
"""

SHORTEST_PAUSE = 0.005
"""Seconds between two looks for a moment at which to kill."""

_HOLDFAST = "from holdfast.__main__ import entry; entry()"
_OURS = ("TEMPORAL_", "HOLDFAST_", "OPENAI_")


class Process(Protocol):
    """What is used of a command's process; ``subprocess.Popen`` has it."""

    @property
    def pid(self) -> int:
        """The process id, which is also that of its process group."""
        ...

    @property
    def returncode(self) -> int | None:
        """The exit code, if it is known."""
        ...

    def poll(self) -> int | None:
        """The exit code, None while it lives."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended."""
        ...


Launch = Callable[[Path, Sequence[str], Path, Mapping[str, str]], Process]
"""Starts a command: its state directory, its arguments, its output's path without suffix, more
variables.
"""


def environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Holdfast process with the state directory ``home``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {
        **inherited,
        "HOLDFAST_HOME": str(home),
        "HOLDFAST_PROCESSES": "1",
        "OPENAI_API_KEY": "dummy",
        "PYTHONPATH": str(ROOT),
        "TEMPORAL_CONFIG_FILE": str(home / "no-such-file.toml"),
        **extra,
    }


def holdfast(
    home: Path, arguments: Sequence[str], log: Path, extra: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start ``holdfast ARGUMENTS`` as the head of a process group of its own; its output goes to
    ``log``.out and .err.
    """
    with log.with_suffix(".out").open("wb") as out, log.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-c", _HOLDFAST, *arguments],
            cwd=home,
            env=environment(home, extra),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def kill_group(process: Process) -> None:
    """``kill -9`` of a process and all its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def processes_of(home: Path) -> dict[int, str]:
    """The live processes whose state directory is ``home``: their ids and command lines."""
    mark = f"HOLDFAST_HOME={home}".encode()
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
        except OSError:
            continue
    return found


def processes_in(directory: Path) -> set[int]:
    """The ids of the live processes whose current directory this is."""
    found = set()
    for entry in Path("/proc").iterdir():
        # Others' are not shown, and between two looks one may have ended.
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == directory:
                found.add(int(entry.name))
    return found


def await_interpreters(process: Process) -> set[int]:
    """The ids of a worker's interpreter processes, once there are any."""
    wait_for(
        lambda: bool(_interpreters_of(process)), "the worker has an interpreter", alive=process
    )
    return _interpreters_of(process)


def await_gone(pids: set[int]) -> None:
    """Wait until the processes have ended."""
    wait_for(
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), f"processes {pids} end"
    )


def kill_what_is_left(home: Home) -> None:
    """Kill the server of a state directory, and all processes whose own it is."""
    # The server may be the child of this process, whose environment is another.
    info = read_info(home) if is_alive(home) else None
    for pid in {*processes_of(home.path), *([info.pid] if info else [])}:
        # It may have ended by itself since.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(
    condition: Callable[[], bool],
    what: str,
    *,
    alive: Process | None = None,
    seconds: float = DEADLINE,
) -> None:
    """Wait until ``condition()`` holds, while the process ``alive`` lives.

    Raises:
        AssertionError: if it does not come true, or the process ended first.
    """
    end = time.monotonic() + seconds
    looked = time.monotonic()
    while not condition():
        now = time.monotonic()
        ended = alive is not None and alive.poll() is not None and not condition()
        assert not ended, f"the process ended ({alive.returncode if alive else ''}) before: {what}"
        assert now < end, f"this did not come true within {seconds:.0f} s: {what}"
        time.sleep(pause_after(now - looked, SHORTEST_PAUSE))
        looked = time.monotonic()


def name_of(pid: int) -> str:
    """What the kernel calls a process; nothing if there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def descendants(pid: int, mark: bytes) -> set[int]:
    """The ids of a process's children, and theirs, whose command line has ``mark`` in it, words
    ended by a null byte.
    """
    found, left = set(), {pid}
    while left:
        with contextlib.suppress(OSError):
            one = left.pop()
            left |= _children_of(one)
            if mark in Path(f"/proc/{one}/cmdline").read_bytes():
                found.add(one)
    return found


def started(pid: int, name: bytes) -> set[int]:
    """The ids of a process's own children whose command line has ``name`` in it."""
    found = set()
    with contextlib.suppress(OSError):
        for child in _children_of(pid):
            if name in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(child)
    return found


def resident_bytes(pid: int) -> int:
    """The memory that a process and its children have resident."""
    found = 0
    for one in {pid, *_children_of(pid)}:
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            found += pages * os.sysconf("SC_PAGE_SIZE")
    return found


def _children_of(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


def _interpreters_of(process: Process) -> set[int]:
    # They get no environment, so ``processes_of`` does not find them.
    found = set()
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                if b"monty" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.add(child)
    return found
