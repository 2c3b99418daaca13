"""Taking a running command's output, and ending it where it must be ended."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from runtime.sandbox.command import Limits
from runtime.sandbox.sizes import told_bytes, told_seconds

TICK = 0.05
"""Seconds between two looks at what a command uses."""
BEAT = 1.0
"""Seconds between two beats."""
_CHUNK = 256 * 1024
_LINE = 200
"""Characters of the last line that are told."""


class Running(Protocol):
    """A started command."""

    @property
    def over_fd(self) -> int | None:
        """Readable once all its processes are gone; None where the system has no such thing."""

    def over(self) -> bool:
        """Whether all its processes are gone, or can hold nobody up."""

    def look(self) -> str:
        """Why it must be ended, or nothing."""

    def kill(self) -> None:
        """End all its processes; without effect if they ended."""


class Started(Running, Protocol):
    """A command that is ready to run, with the read ends of what it prints."""

    stdout: int
    stderr: int

    def let_go(self) -> None:
        """Let it run, if it waits for that."""

    def end(self) -> None:
        """End what still runs, and wait for it."""

    def exit_code(self, *, killed: bool) -> int | None:
        """The command's, once it is over; None if it was never started."""

    def close(self) -> None:
        """Close every descriptor but the output's."""


@dataclass(frozen=True)
class Followed:
    """How a command ended: see ``Finished``."""

    exit_code: int | None
    stopped: str
    output_cut: bool


@dataclass
class _Stream:
    """One pipe of a command, and the file that it goes to."""

    source: int
    target: BinaryIO
    partial: bytes = b""


@dataclass
class Output:
    """What a command prints, kept up to ``limit`` bytes of all its streams together."""

    limit: int
    kept: int = 0
    cut: bool = False
    last_line: str = ""
    streams: dict[int, _Stream] = field(default_factory=dict)

    def add(self, source: int, target: BinaryIO) -> None:
        """Take what comes from ``source``, and close it when it has ended."""
        os.set_blocking(source, False)
        self.streams[source] = _Stream(source, target)

    def take(self, source: int) -> bool:
        """One chunk of one stream; False if there is none now."""
        stream = self.streams[source]
        try:
            chunk = os.read(source, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            os.close(source)
            del self.streams[source]
            return False
        room = self.limit - self.kept
        self.cut |= len(chunk) > room
        stream.target.write(chunk[:room])
        self.kept += min(len(chunk), room)
        self._note_line(stream, chunk)
        return True

    def drain(self) -> None:
        """What is in the pipes now; for a command that is over, with nobody left to write more."""
        for source in list(self.streams):
            while not self.cut and self.take(source):
                pass

    def close(self) -> None:
        """Close what has not ended."""
        for source in self.streams:
            os.close(source)
        self.streams.clear()

    def _note_line(self, stream: _Stream, chunk: bytes) -> None:
        """A progress bar's lines end with a carriage return; blank ones tell nothing."""
        head, ended, rest = chunk.replace(b"\r", b"\n").rpartition(b"\n")
        if not ended:
            stream.partial = (stream.partial + chunk)[-4 * _LINE :]
            return
        # Whole lines, the first of which began in an earlier chunk; only their end can matter.
        whole = (stream.partial + head)[-16 * _LINE :]
        lines = [line for line in whole.split(b"\n") if line.strip()]
        if lines:
            self.last_line = lines[-1].decode("utf-8", "replace").strip()[:_LINE]
        stream.partial = rest[-4 * _LINE :]


def readable(descriptor: int, *, wait: bool = False) -> bool:
    """Whether there is something to read, or the process of a pidfd has ended; any descriptor."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if wait else 0))


def run(
    start: Callable[[], Started],
    limits: Limits,
    stdout: Path,
    stderr: Path,
    *,
    on_beat: Callable[[str], None],
    stop: threading.Event,
) -> Followed:
    """Start a command, and write what it prints to ``stdout`` and ``stderr`` until it is over. None
    of its processes, and no descriptor, is left, also if this fails.
    """
    output = Output(limits.output_bytes)
    with stdout.open("wb") as out, stderr.open("wb") as err, ExitStack() as closing:
        closing.callback(output.close)
        started = start()
        closing.callback(started.close)
        output.add(started.stdout, out)
        output.add(started.stderr, err)
        try:
            started.let_go()
            reason = _follow(started, output, limits, on_beat=on_beat, stop=stop)
        finally:
            started.end()
            output.drain()
        code = started.exit_code(killed=bool(reason))
    # This is how the kernel ends who writes a file beyond the limit.
    if not reason and code == 128 + signal.SIGXFSZ:
        reason = f"it wrote a file of more than {told_bytes(limits.file_bytes)}"
    return Followed(code, reason, output.cut)


def _follow(
    running: Running,
    output: Output,
    limits: Limits,
    *,
    on_beat: Callable[[str], None],
    stop: threading.Event,
) -> str:
    """Take ``output`` until the command is over; why it was ended, or nothing."""
    began = time.monotonic()
    beat, looked, reason = began, began, ""
    poll = select.poll()
    for descriptor in (*output.streams, *([] if running.over_fd is None else [running.over_fd])):
        poll.register(descriptor, select.POLLIN)
    while not running.over():
        for descriptor, _ in poll.poll(TICK * 1000):
            if descriptor in output.streams:
                output.take(descriptor)
                if descriptor not in output.streams:
                    poll.unregister(descriptor)
        now = time.monotonic()
        if not reason:
            reason = _reason(output, limits, now - began, stop)
        if not reason and now - looked >= TICK:
            reason, looked = running.look(), time.monotonic()
        if reason:
            # Again and again: what is being started at this moment is not there to be killed yet.
            running.kill()
        elif now - beat >= BEAT:
            beat = now
            on_beat(output.last_line)
    output.drain()
    return reason or (_too_much(output) if output.cut else "")


def _reason(output: Output, limits: Limits, ran: float, stop: threading.Event) -> str:
    if stop.is_set():
        return "it was cancelled"
    if ran > limits.seconds:
        return f"it ran for more than {told_seconds(limits.seconds)}"
    return _too_much(output) if output.cut else ""


def _too_much(output: Output) -> str:
    return f"it printed more than {told_bytes(output.limit)}"
