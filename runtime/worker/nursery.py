"""Processes forked from one that has loaded what all of them need.

What a worker loads takes seconds, and is most of its memory. A *nursery* loads it once, and forks a
process at each request of the one that started it: it begins in milliseconds, and shares with all
others what nobody has written to since. A nursery has one thread and no connection, and starts
nothing else: what a fork would leave in an unknown state does not exist yet.

The two talk over a socket, a JSON document a line. A request is an object: more variables of the
process to fork. The nursery answers each with the process id, in their order, or with null where it
cannot fork, and tells of each that has ended with an array: its id and its exit code, negative for
the signal that killed it. It ends when the other end is closed and no process is left.

``multiprocessing``'s fork server is no help here: it begins with whatever modules the current
directory has, under our packages' names.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

NURSERY, WORKER = "crew-nursery", "crew-worker"
"""What the kernel calls a nursery, and what it forks: both have one command line."""

_DRAINED_BY = (signal.SIGTERM, signal.SIGINT)
"""Signals that may reach all processes at once, and by which each is to drain: a nursery waits."""


def forks(channel: socket.socket) -> None:
    """Be a nursery. Returns in the processes that are forked, each the head of a session of its
    own, and never in the nursery.
    """
    _be_called(NURSERY)
    # What is looked through is written to, and no longer shared.
    gc.collect()
    gc.freeze()
    woken, wakes = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wakes, False)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _DRAINED_BY}
    handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    living, asked, unread = 0, True, b""
    while asked or living:
        ready, _, _ = select.select([woken, *([channel.fileno()] if asked else [])], [], [])
        with suppress(BlockingIOError):
            os.read(woken, 4096)
        for ended in _ended():
            living -= 1
            _tell(channel, ended)
        if channel.fileno() not in ready:
            continue
        received = _received(channel)
        asked = bool(received)
        *requests, unread = (unread + received).split(b"\n")
        for request in requests:
            # A process is told of at once, and what it is sent before it heeds signals must wait.
            signal.pthread_sigmask(signal.SIG_BLOCK, _DRAINED_BY)
            pid = _forked()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for number, handler in handlers.items():
                    signal.signal(number, handler)
                for descriptor in (woken, wakes, channel.detach()):
                    os.close(descriptor)
                _be_called(WORKER)
                os.setsid()
                os.environ.update(json.loads(request))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _DRAINED_BY)
            if pid == 0:
                return
            living += pid is not None
            _tell(channel, pid)
    # The processes run what was registered for the end, each for itself.
    os._exit(0)


def _forked() -> int | None:
    """What ``os.fork`` returns; None where the machine has no room for another process."""
    try:
        return os.fork()
    except OSError as error:
        sys.stderr.write(f"error: no process can be forked: {error.strerror}\n")
        return None


def _be_called(name: str) -> None:
    # Where there is such a file, and it is writable.
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _ended() -> list[tuple[int, int]]:
    """The processes that have ended since this was asked, and their exit codes."""
    ends = []
    with suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            ends.append((one[0], os.waitstatus_to_exitcode(one[1])))
    return ends


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(1 << 16)
    except ConnectionResetError:
        return b""


def _tell(channel: socket.socket, what: object) -> None:
    # Who asked may be gone; the processes notice that themselves.
    with suppress(OSError):
        channel.sendall(json.dumps(what).encode() + b"\n")


class Forked:
    """A process of a nursery."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        """Wait for its end; returns its exit code, negative for the signal that killed it."""
        return await asyncio.shield(self._code)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        with suppress(ProcessLookupError):
            if not self._code.done():
                os.kill(self.pid, number)

    def has_ended(self, code: int) -> None:
        """Nothing is sent to it from now on: its id may be another's."""
        self._code.set_result(code)


class Nursery:
    """The nursery that ``command`` runs, which is given the number of the socket that it has
    inherited, and then ``arguments``. It is started when the first process is asked for, or before.
    """

    def __init__(self, command: Sequence[str], arguments: Sequence[str]) -> None:
        self._command = command
        self._arguments = arguments
        self._process: Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._asked: deque[asyncio.Future[Forked]] = deque()
        self._living: dict[int, Forked] = {}
        self._beginning = asyncio.Lock()

    async def begin(self) -> None:
        """Start it, if there is none; it loads what it is to load."""
        async with self._beginning:
            if self._hearing is None or self._hearing.done():
                await self._begin()

    async def start(self, variables: Mapping[str, str]) -> Forked:
        """A process that has ``variables`` besides.

        Where there can be none, one that has ended: with the exit code of the nursery if that has
        ended, else with 1.
        """
        await self.begin()
        assert self._writer is not None
        answer: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._writer.write(json.dumps(dict(variables)).encode() + b"\n")
        return await answer

    def signal(self, number: int) -> None:
        """Send a signal to all processes that it has forked."""
        for forked in self._living.values():
            forked.send_signal(number)

    def kill(self) -> None:
        """End it at once, and all of its processes."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def drain(self, seconds: float) -> None:
        """Have all processes drain, and the nursery end; what has not after so long is killed."""
        if self._process is None or self._writer is None or self._hearing is None:
            return
        if self._living:
            self._writer.write_eof()
            self.signal(signal.SIGTERM)
            await asyncio.wait({self._hearing}, timeout=seconds)
        # It may still be loading, and one that it forks meanwhile sees that nobody is left.
        self.kill()
        await asyncio.wait({self._hearing})

    async def _begin(self) -> None:
        ours, its = socket.socketpair()
        # First: behind the start nothing is to be waited for that might be cancelled.
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            process = await self._started(its)
        except BaseException:
            writer.close()
            raise
        finally:
            its.close()
        self._process, self._writer = process, writer
        hearing = self._hear(reader, writer, process)
        self._hearing = asyncio.create_task(hearing, name="nursery")

    async def _started(self, channel: socket.socket) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            str(channel.fileno()),
            *self._arguments,
            pass_fds=[channel.fileno()],
            # Never written to: it ends when this process does, which ``leave_with_parent`` waits
            # for.
            stdin=asyncio.subprocess.PIPE,
            # Ctrl-C reaches the one that started it, which tells the others once.
            start_new_session=True,
        )

    async def _hear(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: Process
    ) -> None:
        # It may be killed with a request unread.
        with suppress(ConnectionError):
            async for line in reader:
                match json.loads(line):
                    case [int(pid), int(code)]:
                        self._living.pop(pid).has_ended(code)
                    case int(pid):
                        self._is_forked(Forked(pid))
                    case None:
                        self._is_stillborn(process, 1)
        writer.close()
        code = await process.wait()
        # Nobody else would tell how its processes end.
        self.signal(signal.SIGKILL)
        for forked in self._living.values():
            forked.has_ended(-signal.SIGKILL)
        self._living.clear()
        while self._asked:
            self._is_stillborn(process, code)

    def _is_forked(self, forked: Forked) -> None:
        self._living[forked.pid] = forked
        if not self._answer(forked):
            forked.send_signal(signal.SIGTERM)

    def _is_stillborn(self, nursery: Process, code: int) -> None:
        self._answer(stillborn := Forked(nursery.pid))
        stillborn.has_ended(code)

    def _answer(self, forked: Forked) -> bool:
        """Give a process to the first who has asked for one and still waits, and say whether."""
        answer = self._asked.popleft()
        if answer.done():
            return False
        answer.set_result(forked)
        return True
