"""The process in which the tools of one directory run, which ``host`` starts: ``child SEARCH_PATH
CHANNEL LIFELINE [ALLOWED...]``.

Each frame asks for something by a number: to ``describe`` a tool, to ``call`` one, to ``cancel`` a
call. Functions run in threads, coroutines on one event loop. Before a call begins, the worker is
told: until then it may be made elsewhere.

The process ends when its worker does, whatever a tool is doing then, and takes the processes that a
tool started with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec, PathFinder
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from runtime.base.errors import InputError
from runtime.base.lifelines import ends_with
from runtime.tools.allowed import NotAllowed
from runtime.tools.calls import GAVE_UP, Outcome, bound
from runtime.tools.frames import Broken, Channel
from runtime.tools.functions import Tool, open_tool, told

MAX_THREADS = 64
"""Functions that run at a time."""


def main() -> None:
    """Serve until the worker is gone."""
    search_path, channel, lifeline, *allowed = sys.argv[2:]
    # A module may parse the arguments of its process, and these are none of its own.
    sys.argv = ["holdfast-tools"]
    # This process is killed in the end: what a tool prints would stay in its buffers.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    live_as_long_as(int(lifeline))
    connection = socket.socket(fileno=int(channel))
    connection.set_inheritable(False)
    # A copy of this process that a tool makes is none of ours.
    os.register_at_fork(after_in_child=connection.close)
    sys.meta_path.insert(0, _Neighbours(search_path))
    # For directories without a module of their own, which anything else of their name goes before.
    sys.path.append(search_path)
    _Child(search_path, Channel(connection), [Path(one).resolve() for one in allowed]).serve()


class _Neighbours:
    """Finds what lies beside the jobs file, before whatever is installed, but for Python's own
    library.
    """

    def __init__(self, directory: str) -> None:
        self._path = [directory]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``importlib.abc.MetaPathFinder``."""
        if path is not None or fullname in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(fullname, self._path, target)
        return spec if spec is not None and spec.loader is not None else None


class _Child:
    def __init__(self, search_path: str, channel: Channel, allowed: Sequence[Path]) -> None:
        self._search_path = search_path
        self._allowed = allowed
        self._channel = channel
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="tool")
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[int, asyncio.Task[Outcome]] = {}
        self._unwanted: set[int] = set()

    def serve(self) -> None:
        threading.Thread(target=self._listen, name="tools-channel", daemon=True).start()
        while True:
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A coroutine's, which is told as its outcome: the loop ends itself by it too.
                continue

    def _listen(self) -> None:
        try:
            while (frame := self._channel.receive()) is not None:
                self._take(frame)
        except (Broken, KeyError, OSError):
            pass
        end()

    def _take(self, frame: dict[str, Any]) -> None:
        number = int(frame["id"])
        match frame["do"]:
            case "describe":
                self._threads.submit(self._describe, number, str(frame["target"]))
            case "call":
                self._threads.submit(
                    self._call, number, str(frame["target"]), frame["args"], frame["kwargs"]
                )
            case "cancel":
                self._unwanted.add(number)
                self._loop.call_soon_threadsafe(self._cancel, number)

    def _describe(self, number: int, target: str) -> None:
        tool = self._opened(number, target)
        if tool is not None:
            self._tell(number, "spec", tool.spec.model_dump(mode="json"))

    def _call(self, number: int, target: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        tool = self._opened(number, target)
        if tool is None:
            return
        # It may have been cancelled while it waited for a thread: then it never begins.
        call = bound(tool, args, kwargs) if number not in self._unwanted else GAVE_UP
        if isinstance(call, Outcome):
            self._tell(number, "outcome", call.plain())
            return
        self._channel.send({"id": number, "begun": True, "blocks": not tool.spec.is_async})
        if tool.spec.is_async:
            self._loop.call_soon_threadsafe(self._begin, number, call.run_async())
        else:
            self._tell(number, "outcome", call.run().plain())

    def _opened(self, number: int, target: str) -> Tool | None:
        try:
            return open_tool(target, self._search_path, self._allowed)
        except NotAllowed as error:
            self._tell(number, "refused", str(error))
        except InputError as error:
            self._tell(number, "unavailable", str(error))
        except BaseException as error:  # noqa: BLE001 whatever a module raises while it is imported
            self._tell(number, "unavailable", told(error))
        return None

    def _begin(self, number: int, running: Coroutine[Any, Any, Outcome]) -> None:
        task = self._tasks[number] = self._loop.create_task(running)
        task.add_done_callback(lambda done: self._ends(number, done))
        # The wish may have come before the task.
        if number in self._unwanted:
            task.cancel()

    def _ends(self, number: int, done: asyncio.Task[Outcome]) -> None:
        del self._tasks[number]
        # One that was cancelled before its first step has no outcome of its own.
        outcome = GAVE_UP if done.cancelled() else done.result()
        self._tell(number, "outcome", outcome.plain())

    def _cancel(self, number: int) -> None:
        if number in self._tasks:
            self._tasks[number].cancel()

    def _tell(self, number: int, what: str, value: Any) -> None:
        try:
            self._channel.send({"id": number, what: value})
        except OSError:
            # The worker is gone, or a tool has closed what is not its own: the answer would never
            # come.
            end()
        finally:
            self._unwanted.discard(number)


def live_as_long_as(lifeline: int) -> None:
    """End, with all that was started here, when nobody holds the other end of the pipe ``lifeline``
    any more.

    The kernel sees to it, also where a tool holds the interpreter's lock for ever. What ends a
    terminal's or a service's processes is for the worker to hear, which lets calls in flight end.
    """
    # Not SIG_IGN: what a tool starts would inherit it, and be deaf, too.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    os.set_inheritable(lifeline, False)
    # To what tools have started as well.
    ends_with(lifeline, os.getpgrp())


def end() -> None:
    """End this process, with all that was started here."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
