"""The processes in which a worker's tools run: one for each directory of tools, started when it is
first needed.

What a tool imports, breaks, leaks or blocks is its own process's. One that ends ends the calls that
had begun in it, as their error; the next call starts another. A function cannot be interrupted, so
a process with one that was cancelled takes no new calls, and ends with its last other call.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.base.errors import InputError
from runtime.base.own_process import command
from runtime.base.spec.models import ToolSpec
from runtime.base.spec.servers import ServerSpec
from runtime.tools.allowed import NotAllowed
from runtime.tools.environment import ALWAYS, tool_environment
from runtime.tools.frames import Broken, Channel

MOST_IDLE = 4
"""Processes for one call each that are kept for a next one."""


TRIES = 3
"""How many processes are asked for one tool, if they are killed."""

LOOK_SECONDS = 0.1
"""Between two looks at whether an answer is still wanted, and within its time."""


class HostEnded(Exception):
    """The process ended. ``begun``: in mid-call; else the tool has not run. ``killed``: by a signal
    that no fault of a module's sends.
    """

    def __init__(self, how: str, *, begun: bool, killed: bool = False) -> None:
        super().__init__(how)
        self.begun = begun
        self.killed = killed


class HostClosed(Exception):
    """The worker has closed the process."""


@dataclass
class Asked:
    """Something that the process was asked for, and the answer's frame."""

    number: int
    answer: Future[dict[str, Any]] = field(default_factory=Future)
    begun_at: float | None = None
    """By the clock of ``time.monotonic``."""
    blocks: bool = True
    """Whether nothing cancels it: until it begins, its module may be being imported."""
    given_up: bool = False

    @property
    def begun(self) -> bool:
        """Whether the call runs, or has run."""
        return self.begun_at is not None


class ToolHost:
    """One process for the tools in a directory, or for those of an MCP server; ``secrets`` are the
    names of variables that it gets although they are secret, ``allowed`` the directories that
    tools are taken from, none for any.
    """

    def __init__(
        self, of: str | ServerSpec, secrets: Sequence[str] = (), allowed: Sequence[Path] = ()
    ) -> None:
        self._numbers = itertools.count(1)
        self._asked: dict[int, Asked] = {}
        self._lock = threading.Lock()
        self._closed = self._ended = self._over = False
        ours, theirs = socket.socketpair()
        lifeline, self._alive = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    *_command_for(of),
                    str(theirs.fileno()),
                    str(lifeline),
                    *map(str, allowed),
                ],
                pass_fds=(theirs.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                # What tools print is not what the command says.
                stdout=2,
                env=_environment_for(of, secrets),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(self._alive)
            raise
        finally:
            theirs.close()
            os.close(lifeline)
        self._channel = Channel(ours)
        threading.Thread(target=self._listen, name="holdfast-tools", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def takes_calls(self) -> bool:
        """Whether it lives, and no function of it was given up."""
        with self._lock:
            return not (self._ended or self._closed or self._over) and not any(
                asked.given_up for asked in self._asked.values()
            )

    @property
    def has_ended(self) -> bool:
        """Whether its process is gone."""
        with self._lock:
            return self._ended

    def describe(self, target: str) -> Asked:
        """Ask for the ``spec`` of a tool."""
        return self._ask({"do": "describe", "target": target})

    def call(self, target: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Asked:
        """Ask for the ``outcome`` of a call.

        Raises:
            ValueError: if the arguments cannot cross.
        """
        return self._ask({"do": "call", "target": target, "args": list(args), "kwargs": kwargs})

    def read(self, uri: str) -> Asked:
        """Ask for a ``resource`` of the server, or for the list of them."""
        return self._ask({"do": "read", "target": uri})

    def give_up(self, asked: Asked) -> None:
        """Nobody waits for the call any more: a coroutine is cancelled, a function's process ends
        as soon as it may.
        """
        with self._lock:
            asked.given_up = asked.number in self._asked
        with contextlib.suppress(OSError):
            self._channel.send({"id": asked.number, "do": "cancel"})
        self._end_if_stuck()

    def retire(self) -> None:
        """Have it take no calls any more: its connection is over."""
        with self._lock:
            self._over = True

    def close(self) -> None:
        """End the process, and what its tools have started."""
        with self._lock:
            self._closed = True
        self._kill()

    def _ask(self, frame: dict[str, Any]) -> Asked:
        asked = Asked(next(self._numbers))
        with self._lock:
            if self._ended:
                asked.answer.set_exception(self._reason(asked))
                return asked
            self._asked[asked.number] = asked
        try:
            # Outside the lock: to send may wait for the process to read, and its answers need the
            # lock.
            self._channel.send({"id": asked.number, **frame})
        except OSError:
            # That it ended is told by whoever listens.
            pass
        except (ValueError, RecursionError) as error:
            with self._lock:
                self._asked.pop(asked.number, None)
            raise ValueError(f"the arguments cannot cross: {error}") from error
        return asked

    def _listen(self) -> None:
        try:
            while (frame := self._channel.receive()) is not None:
                self._take(frame)
        except (Broken, KeyError, OSError):
            pass
        # What it may still do, nobody can hear of any more.
        self._kill()
        self._process.wait()
        self._channel.close()
        os.close(self._alive)
        with self._lock:
            self._ended = True
            left = list(self._asked.values())
            self._asked.clear()
        for asked in left:
            # Whoever waited may be gone, and a cancelled future takes no answer.
            if asked.answer.set_running_or_notify_cancel():
                asked.answer.set_exception(self._reason(asked))

    def _take(self, frame: dict[str, Any]) -> None:
        with self._lock:
            asked = self._asked.get(frame["id"])
            begins = bool(frame.get("begun"))
            if not begins:
                self._asked.pop(frame["id"], None)
            elif asked is not None:
                asked.begun_at, asked.blocks = time.monotonic(), bool(frame["blocks"])
        if asked is not None and not begins and asked.answer.set_running_or_notify_cancel():
            asked.answer.set_result(frame)
        self._end_if_stuck()

    def _end_if_stuck(self) -> None:
        """End the process if all that it still does is what nobody waits for, and that cannot be
        cancelled.
        """
        with self._lock:
            stuck = [asked for asked in self._asked.values() if asked.given_up and asked.blocks]
            ends = bool(stuck) and all(asked.given_up for asked in self._asked.values())
        if ends:
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # It is the head of a group of its own, and is not waited for before its channel is at
            # an end.
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _reason(self, asked: Asked) -> Exception:
        if self._closed:
            return HostClosed("the worker has ended the process of its tools")
        code = self._process.returncode
        return HostEnded(_how(code), begun=asked.begun, killed=code == -signal.SIGKILL)


def _command_for(of: str | ServerSpec) -> list[str]:
    if isinstance(of, ServerSpec):
        return [*command("runtime.tools.server_child"), of.model_dump_json()]
    return [*command("runtime.tools.child", path=True), of]


def _environment_for(of: str | ServerSpec, secrets: Sequence[str]) -> dict[str, str]:
    if isinstance(of, ServerSpec):
        wanted = (*of.env, *([of.token] if of.token else []))
        return {name: os.environ[name] for name in (*ALWAYS, *wanted) if name in os.environ}
    named = {name: os.environ[name] for name in secrets if name in os.environ}
    return {**tool_environment(os.environ), **named}


def _named(search_path: str, secrets: Sequence[str]) -> str:
    return "\0".join((search_path, *secrets))


@dataclass
class ToolHosts:
    """A worker's processes, by the directory of their tools and the secrets that they are given, or
    by their MCP server. ``allowed`` are the directories that tools are taken from, none for any.
    """

    allowed: Sequence[Path] = ()
    _hosts: dict[str, ToolHost] = field(default_factory=dict)
    _idle: dict[str, list[ToolHost]] = field(default_factory=dict)
    _retired: set[ToolHost] = field(default_factory=set)
    """Those that live beside the ones of ``of``: lent, idle, or with calls in flight and no new
    ones.
    """
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tools: str | ServerSpec, secrets: Sequence[str] = ()) -> ToolHost:
        """The process for the tools in a directory or of a server, started if there is none that
        takes calls.
        """
        name = _named(tools, secrets) if isinstance(tools, str) else tools.model_dump_json()
        with self._lock:
            host = self._hosts.get(name)
            if host is None or not host.takes_calls:
                if host is not None:
                    self._retired.add(host)
                # Not kept once they are gone: servers may break a connection any number of times.
                self._retired = {one for one in self._retired if not one.has_ended}
                host = self._hosts[name] = self._started(tools, secrets)
            return host

    def lent(self, search_path: str, secrets: Sequence[str] = ()) -> ToolHost:
        """A process for one call alone, which may be ended in its midst; to be given back."""
        with self._lock:
            idle = self._idle.setdefault(_named(search_path, secrets), [])
            while idle:
                host = idle.pop()
                if host.takes_calls:
                    return host
                self._retired.discard(host)
            host = self._started(search_path, secrets)
            # A lent one stands among those from the start, so that ``close`` ends it as well.
            self._retired.add(host)
            return host

    def give_back(self, host: ToolHost, search_path: str, secrets: Sequence[str] = ()) -> None:
        """The call is over. Some processes are kept for the next ones."""
        with self._lock:
            idle = self._idle.setdefault(_named(search_path, secrets), [])
            kept = host.takes_calls and host in self._retired and len(idle) < MOST_IDLE
            if kept:
                idle.append(host)
            else:
                self._retired.discard(host)
        if not kept:
            host.close()

    def _started(self, of: str | ServerSpec, secrets: Sequence[str]) -> ToolHost:
        return ToolHost(of, secrets, self.allowed if isinstance(of, str) else ())

    def close(self) -> None:
        """End them all."""
        with self._lock:
            hosts = [*self._hosts.values(), *self._retired]
            self._hosts.clear()
            self._idle.clear()
            self._retired.clear()
        for host in hosts:
            host.close()


def described(
    hosts: ToolHosts,
    target: str,
    path: str,
    secrets: Sequence[str] = (),
    stop: threading.Event | None = None,
) -> ToolSpec:
    """What the tool ``target`` in the directory ``path`` looks like to a statement.

    A process that is killed is no fault of the module's: another one is asked.

    Raises:
        InputError: it cannot be imported, is no typed function, or has a name that is taken; or
            each process was killed.
        InterruptedError: if ``stop`` says that nobody wants it any more.
        NotAllowed: it is not below an allowed directory.
    """
    module = target.partition(":")[0]
    for _ in range(TRIES):
        try:
            host = hosts.of(path, secrets)
            frame = _wanted(host, host.describe(target), stop)
        except HostEnded as error:
            if not error.killed:
                raise InputError(f"importing {module!r} failed: its process {error}") from error
            continue
        if "refused" in frame:
            raise NotAllowed(str(frame["refused"]))
        if "unavailable" in frame:
            raise InputError(str(frame["unavailable"]))
        return ToolSpec.model_validate(frame["spec"])
    raise InputError(
        f"{TRIES} processes were started to import {module!r}, and each was killed (SIGKILL): by"
        " somebody, or because this machine has too little memory"
    )


def _wanted(host: ToolHost, asked: Asked, stop: threading.Event | None) -> dict[str, Any]:
    """The frame that answers, for as long as it is wanted: an import may never end."""
    while True:
        try:
            return asked.answer.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            if stop is None or not stop.is_set():
                continue
        # Others may have calls in the process.
        host.give_up(asked)
        raise InterruptedError("the tool is not wanted any more")


def describe_tool(target: str, search_path: str) -> ToolSpec:
    """As ``described``, in a process that ends with it."""
    hosts = ToolHosts()
    try:
        return described(hosts, target, search_path)
    finally:
        hosts.close()


def _how(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
