"""The nurseries of commands' crews, which have loaded all that they are to load: that of a forked
command is forked with it, before that has threads, and that of a command in the tests' own process
from what commands are forked from.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from runtime.cli import member
from runtime.worker.crew import MEMBER
from runtime.worker.nursery import Nursery
from tests.forks.forked import Forked, forked_nursery

_WORDS = 1 << 16
"""Bytes that the words of a command have at most."""

_TO_ALL = (signal.SIGINT, signal.SIGTERM)


class _Child:
    """A child of this process, with the part of ``asyncio``'s that a nursery uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def reserve() -> None:
    """Fork a process that becomes the nursery which this one begins, if it begins one; another one
    is started as ever. Never returns in the processes of the crew.
    """
    ours, its = socket.socketpair()
    # What is sent to the whole group is for the command, until the other has a session of its own.
    signal.pthread_sigmask(signal.SIG_BLOCK, _TO_ALL)
    pid = os.fork()
    handlers = {number: signal.getsignal(number) for number in _TO_ALL}
    if pid == 0:
        ours.close()
        for number in _TO_ALL:
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_ALL)
    if pid == 0:
        _wait_to_be_one(its, handlers)
    its.close()
    begin_another = Nursery._started

    async def started(nursery: Nursery, channel: socket.socket) -> Process:
        nonlocal ours
        if ours.fileno() < 0:
            return await begin_another(nursery, channel)
        ends, nursery._holds = os.pipe()  # type: ignore[attr-defined]
        words = json.dumps(nursery._arguments).encode()
        with ours:
            socket.send_fds(ours, [words], [channel.fileno(), ends])
        os.close(ends)
        return cast("Process", _Child(pid))

    Nursery._started = started  # type: ignore[method-assign]


def _wait_to_be_one(asked: socket.socket, handlers: Mapping[int, Any]) -> NoReturn:
    words, descriptors, _, _ = socket.recv_fds(asked, _WORDS, 2)
    asked.close()
    if not words:
        # The command has ended.
        os._exit(0)
    os.setsid()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    channel, ends = descriptors
    os.dup2(ends, 0)
    os.close(ends)
    sys.argv = ["holdfast", MEMBER, str(channel), *json.loads(words)]
    member.main()
    raise AssertionError("a nursery, and what it forks, ends by itself")


class _Sibling:
    """A process of the fork server's, with the part of ``asyncio``'s that a nursery uses. It and
    what it forks live no longer than the descriptor ``holds`` is open.
    """

    def __init__(self, forked: Forked, holds: int) -> None:
        self._forked = forked
        self._holds = holds
        self.pid = forked.pid

    def kill(self) -> None:
        self._forked.kill()

    async def wait(self) -> int:
        code = await asyncio.to_thread(self._forked.wait)
        os.close(self._holds)
        return code


async def begun_by_fork(nursery: Nursery, channel: socket.socket) -> Process:
    """In place of ``Nursery._started``."""
    ends, holds = os.pipe()
    try:
        forked = forked_nursery(nursery._arguments, channel.fileno(), ends)
    finally:
        os.close(ends)
    return cast("Process", _Sibling(forked, holds))
