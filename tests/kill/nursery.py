"""Commands forked from a process that has loaded everything, for experiments of many kills.

Most of what a killed worker costs a machine is the import of libraries, which is the same each
time. A forked command is a process of its own all the same: it has its own server connection,
interpreters and threads, none of which exist before the fork.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.kill.processes import environment, wait_for

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.kill.nursery_preload"])

_ONE_AT_A_TIME = threading.Lock()
"""Who starts a process looks after all others; of two who look after one at a time, one would be
told a wrong exit code.
"""


class Forked:
    """A forked command, with the part of ``subprocess.Popen`` that a scene uses."""

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
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(0.01)
        return code


def without_overlays() -> None:
    """Have what commands change found by looking through all files, as on a host without overlays
    (the fixture ``tracking``).
    """
    from activities.versions import Versions

    Versions.overlays = False  # type: ignore[assignment]


def forked(
    home: Path,
    arguments: Sequence[str],
    log: Path,
    extra: Mapping[str, str],
    before: Callable[[], None] | None = None,
) -> Forked:
    """As ``processes.holdfast``, by a fork, which does something ``before``. Its environment is not
    in ``/proc``.
    """
    variables = environment(home, extra)
    process = _FORKS.Process(
        target=_command, args=(str(home), list(arguments), str(log), variables, before)
    )
    with _ONE_AT_A_TIME:
        process.start()
    made = Forked(process)
    # A kill of its group must not come before the group is there.
    wait_for(
        lambda: os.getpgid(made.pid) == made.pid, "the command heads its process group", alive=made
    )
    return made


def _command(
    home: str,
    arguments: list[str],
    log: str,
    variables: dict[str, str],
    before: Callable[[], None] | None,
) -> None:
    """Become ``holdfast ARGUMENTS`` as far as a fork can: session, directory, variables,
    streams.
    """
    os.setsid()
    os.chdir(home)
    os.environ.clear()
    os.environ.update(variables)
    for descriptor, suffix in ((1, ".out"), (2, ".err")):
        opened = os.open(Path(log).with_suffix(suffix), os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(opened, descriptor)
        os.close(opened)
    from runtime.base import failpoints
    from runtime.cli.main import entry

    if before is not None:
        before()
    failpoints.arm(os.environ)
    sys.argv = ["holdfast", *arguments]
    entry()
