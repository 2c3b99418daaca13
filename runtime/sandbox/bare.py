"""No sandbox: a command as the worker's own user, with limits, a clean environment and nothing else
between.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runtime.sandbox import inside, supervise
from runtime.sandbox.command import Command, Finished, Limits, Place, SandboxFailed
from runtime.sandbox.following import readable, run
from runtime.sandbox.process_groups import ProcessGroup
from runtime.sandbox.starting import starting
from runtime.sandbox.system import described
from runtime.sandbox.watching import Watch, descendants


class Bare:
    """The sandbox ``none``: only for places that are a directory, which is not at ``root`` then."""

    name = "none"

    def __init__(self) -> None:
        self.system = described()

    def run(
        self,
        command: Command,
        place: Place,
        stdout: Path,
        stderr: Path,
        *,
        on_beat: Callable[[str], None],
        stop: threading.Event,
    ) -> Finished:
        """See ``Sandbox``."""
        if place.directory is None:
            raise SandboxFailed("without a sandbox a workspace is a directory, and has no layers")
        if not place.directory.is_dir():
            raise SandboxFailed(f"there is no directory {place.directory}")
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="holdfast-") as home:
            start = partial(_start, command, place, Path(home))
            ended = run(start, command.limits, stdout, stderr, on_beat=on_beat, stop=stop)
        assert ended.exit_code is not None
        seconds = time.monotonic() - began
        return Finished(ended.exit_code, seconds, ended.stopped, ended.output_cut)


@dataclass
class _Started:
    """The supervisor of a command."""

    process: subprocess.Popen[bytes]
    stdout: int
    stderr: int
    status: int
    lifeline: int
    group: ProcessGroup | None
    limits: Limits
    written: tuple[Path, ...]
    watch: Watch | None = None
    over_fd: int | None = None

    def over(self) -> bool:
        """See ``Running``."""
        if self.over_fd is None:
            return self.process.poll() is not None
        return readable(self.over_fd)

    def look(self) -> str:
        """See ``Running``."""
        try:
            return "" if self.watch is None else self.watch.look()
        except OSError:
            # It ended while it was being looked at.
            return ""

    def let_go(self) -> None:
        """See ``Started``: it runs by now, and is watched from here on."""
        if sys.platform == "linux":
            pid = self.process.pid
            self.over_fd = os.pidfd_open(pid)
            proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.watch = Watch(self.limits, proc, descendants(pid), written=self.written)

    def kill(self) -> None:
        """See ``Running``."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def end(self) -> None:
        """See ``Started``."""
        self.kill()
        self.process.wait()

    def exit_code(self, *, killed: bool) -> int:
        """The command's, or a kill's if it has killed its supervisor."""
        told = os.read(self.status, 100)
        return int(told) if told else 128 + signal.SIGKILL

    def close(self) -> None:
        """See ``Started``."""
        self.kill()
        os.close(self.status)
        if self.over_fd is not None:
            os.close(self.over_fd)
        if self.watch is not None:
            os.close(self.watch.proc)
        if self.group is not None:
            self.group.remove()


def _start(command: Command, place: Place, home: Path) -> _Started:
    assert place.directory is not None
    with starting() as start:

        def handed(data: bytes) -> int:
            file = start.its.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 closed there
            file.write(data)
            file.seek(0)
            return file.fileno()

        script = home / "command"
        script.write_bytes(command.shell.encode("utf-8", "surrogateescape"))
        status, told = start.pipe(ours=0)
        lifeline, theirs_alive = start.pipe(ours=1)
        stdout, out = start.pipe(ours=0)
        stderr, err = start.pipe(ours=0)
        group = ProcessGroup.made(command.limits.beyond_processes)
        if group is not None:
            start.ours.callback(group.remove)
        order = handed(json.dumps(_order(command, place, home, script, group)).encode())
        descriptors = (order, theirs_alive, told)
        process = subprocess.Popen(
            # -I and -S: what a user has set or installed for Python has no part in it.
            [sys.executable, "-I", "-S", supervise.__file__, *map(str, descriptors)],
            stdin=handed(command.stdin),
            stdout=out,
            stderr=err,
            env={},
            pass_fds=descriptors,
            # Ctrl-C is for the worker, which ends the command in its own way.
            start_new_session=True,
        )
    written = [place.directory, home]
    if place.setup is not None and place.setup_writable:
        written.append(place.setup)
    return _Started(
        process, stdout, stderr, status, lifeline, group, command.limits, tuple(written)
    )


def _order(
    command: Command, place: Place, home: Path, script: Path, group: ProcessGroup | None
) -> dict[str, object]:
    environment = {
        **inside.variables(None if place.setup is None else str(place.setup)),
        "HOME": str(home),
        "TMPDIR": str(home),
        **command.env,
    }
    return {
        "argv": [inside.SHELL, str(script)],
        "env": environment,
        "directory": str(place.directory),
        "limits": list(inside.kernel_limits(command.limits).items()),
        "group": None if group is None else str(group.entrance),
    }
