"""Commands forked from a process that has loaded everything, for tests that start many.

Most of what a command costs a machine is the import of libraries, which is the same each time. A
forked command is a process of its own all the same: it has its own server connection, interpreters
and threads, none of which exist before the fork. So has a crew's nursery that it begins. What the
kernel tells of it (its command line, its environment) is another process's.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from importlib import import_module
from multiprocessing import connection, reduction
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TextIO

_PRELOADED = "tests.forks.preload"

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([_PRELOADED])

_ONE_AT_A_TIME = threading.Lock()
"""Who starts a process looks after all others; of two who look after one at a time, one would be
told a wrong exit code.
"""

_PAUSE = 0.01
"""Seconds between two looks for a process's group."""


class Forked:
    """A forked command, with the part of ``subprocess.Popen[str]`` that tests use. The streams are
    there where they are pipes.
    """

    stdout: TextIO | None = None
    stderr: TextIO | None = None

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; negative for the signal that killed it, None while it lives."""
        return self.poll()

    def poll(self) -> int | None:
        """The same."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns the exit code.

        Raises:
            subprocess.TimeoutExpired: if it does not come in time.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if timeout is None else max(end - time.monotonic(), 0.0)
            if not connection.wait([self._process.sentinel], left):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it writes to its pipes, until all who hold their ends have ended, and it has.

        Raises:
            subprocess.TimeoutExpired: if that does not come in time.
        """
        assert self.stdout is not None
        assert self.stderr is not None
        end = math.inf if timeout is None else time.monotonic() + timeout
        readers = ThreadPoolExecutor(2)
        try:
            said = [readers.submit(stream.read) for stream in (self.stdout, self.stderr)]
            out, err = (one.result(timeout) for one in said)
        except NotInTime:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from None
        finally:
            readers.shutdown(wait=False)
        self.wait(None if timeout is None else max(end - time.monotonic(), 0.0))
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


class _Stream:
    """A descriptor of this process that a forked one gets."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __getstate__(self) -> object:
        return reduction.DupFd(self.descriptor)

    def __setstate__(self, given: object) -> None:
        self.descriptor = given.detach()  # type: ignore[attr-defined]


def forked(
    arguments: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    *,
    out: int,
    err: int,
    before: Callable[[], None] | None = None,
) -> Forked:
    """Start ``holdfast ARGUMENTS``, the head of a session of its own, whose output goes to the
    descriptors ``out`` and ``err``, and which does something ``before``.
    """
    process = _FORKS.Process(
        target=_command,
        args=(str(cwd), list(arguments), dict(variables), _Stream(out), _Stream(err), before),
    )
    with _ONE_AT_A_TIME:
        process.start()
    made = Forked(process)
    # A kill of its group must not come before the group is there.
    while made.poll() is None and not _heads_its_group(made.pid):
        time.sleep(_PAUSE)
    return made


def _heads_its_group(pid: int) -> bool:
    # Between two looks it may have ended.
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid) == pid
    return False


def piped(
    arguments: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    before: Callable[[], None] | None = None,
) -> Forked:
    """The same, whose output is read from its pipes."""
    read_out, out = os.pipe()
    read_err, err = os.pipe()
    try:
        made = forked(arguments, cwd, variables, out=out, err=err, before=before)
    finally:
        os.close(out)
        os.close(err)
    made.stdout, made.stderr = os.fdopen(read_out), os.fdopen(read_err)
    return made


def forked_module(module: str, arguments: Sequence[str]) -> Forked:
    """Start ``python -m MODULE ARGUMENTS``, the head of a session of its own, whose output is read
    from a pipe.
    """
    read, out = os.pipe()
    try:
        process = _FORKS.Process(
            target=_module,
            args=(str(Path.cwd()), module, list(arguments), dict(os.environ), _Stream(out)),
        )
        with _ONE_AT_A_TIME:
            process.start()
    finally:
        os.close(out)
    made = Forked(process)
    made.stdout = os.fdopen(read)
    return made


def _module(
    cwd: str, module: str, arguments: list[str], variables: dict[str, str], out: _Stream
) -> None:
    _take_over(cwd, variables, (os.open(os.devnull, os.O_RDONLY), out.descriptor, 2))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__")


def _command(
    cwd: str,
    arguments: list[str],
    variables: dict[str, str],
    out: _Stream,
    err: _Stream,
    before: Callable[[], None] | None,
) -> None:
    """Become ``holdfast ARGUMENTS`` as far as a fork can: session, directory, variables,
    streams.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    _take_over(cwd, variables, (nothing, out.descriptor, err.descriptor))
    from runtime.base import failpoints
    from runtime.cli.main import entry
    from tests.forks.crew import reserve

    if before is not None:
        before()
    failpoints.arm(os.environ)
    sys.argv = ["holdfast", *arguments]
    reserve()
    entry()


def forked_nursery(arguments: Sequence[str], channel: int, ends: int) -> Forked:
    """Fork what becomes the nursery of a crew that this process begins: with its directory,
    variables and output, the socket that it has as ``channel``, and ``ends`` for its input.
    """
    streams = tuple(map(_Stream, (ends, 1, 2, channel)))
    process = _FORKS.Process(
        target=_nursery, args=(str(Path.cwd()), list(arguments), dict(os.environ), streams)
    )
    with _ONE_AT_A_TIME:
        process.start()
    return Forked(process)


def _nursery(
    cwd: str, arguments: list[str], variables: dict[str, str], streams: tuple[_Stream, ...]
) -> None:
    *standard, channel = (stream.descriptor for stream in streams)
    _take_over(cwd, variables, standard)
    from runtime.cli import member
    from runtime.worker.crew import MEMBER

    sys.argv = ["holdfast", MEMBER, str(channel), *arguments]
    member.main()


def _take_over(cwd: str, variables: Mapping[str, str], standard: Sequence[int]) -> None:
    """Be a process of a session of its own, with this directory and these variables and standard
    streams.
    """
    # The fork server says nothing of an import that failed, and each command would load it all.
    import_module(_PRELOADED)
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for place, taken in enumerate(standard):
        if taken != place:
            os.dup2(taken, place)
            os.close(taken)
    # Those of before are made for what the first process had in their place.
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, closefd=False)
