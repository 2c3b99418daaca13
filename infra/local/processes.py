"""Processes that outlive the command that starts them, known by their ids and when they began."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 45.0
"""Seconds that a process has to end by itself: a worker drains for 20."""

READY = 180.0
"""Seconds that one has to serve; a busy machine takes its time."""


@dataclass(frozen=True)
class Component:
    """A process of a fleet. ``ready`` says whether it serves, of what its log says too."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    ready: Callable[[], bool]

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.log"

    @property
    def _pid(self) -> Path:
        return self.folder / f"{self.name}.pid"

    @property
    def pid(self) -> int | None:
        """Its process, if that runs."""
        try:
            pid, began = map(int, self._pid.read_text().split())
        except (FileNotFoundError, ValueError):
            return None
        return pid if _began(pid) == began else None

    def start(self) -> None:
        """Start it, unless it runs, and wait until it serves.

        Raises:
            RuntimeError: if it ends before, or takes too long.
        """
        self.launch()
        self.serve()

    def launch(self) -> None:
        """Start it, unless it runs, and wait for nothing."""
        if self.pid is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # With the time of its begin: a number is given again, to processes of others too.
        self._pid.write_text(f"{process.pid} {_began(process.pid)}")

    def serve(self) -> None:
        """Wait until it serves.

        Raises:
            RuntimeError: if it ends before, or takes too long.
        """
        end = time.monotonic() + READY
        while True:
            # Asked first: where its port is taken, another's process answers.
            ready = self.ready()
            if self.pid is None or (not ready and time.monotonic() > end):
                raise RuntimeError(f"{self.name} does not serve: {self.log.read_text()[-2000:]}")
            if ready:
                return
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as ``kill -9`` does, with all that it started."""
        self._signal(signal.SIGKILL)
        self._wait(PATIENCE)

    def stop(self) -> None:
        """Have it end by itself, and kill it if it does not."""
        self._signal(signal.SIGTERM)
        if not self._wait(PATIENCE):
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def _wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (pid := self.pid) is not None:
            # If it is this process's child it stays as a zombie until somebody waits for it.
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True


def _began(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None if it has ended."""
    try:
        # Behind the last parenthesis: the name of a program may hold blanks and parentheses.
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The 22nd field, of which the state is the third.
    return None if state in "ZX" else int(rest[18])
