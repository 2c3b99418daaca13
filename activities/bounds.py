"""Where on a worker's machine an order may take scripts, tools and workspaces from.

Orders are signed, so they say what their owner said, and by default a worker takes what they name.
A worker that is given directories (``holdfast worker --allow DIR``) takes nothing from elsewhere,
whoever has the key. Symbolic links are followed before a path is judged. What may run anything, as
a shell that no sandbox holds, is below no directory. A tool's process judges once more what it has
imported (``runtime.tools.allowed``).
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.contracts import (
    CheckRequest,
    FileCall,
    ReadBatch,
    ServersQuestion,
    SummaryCall,
    ToolRequest,
    TurnCall,
    WorkspaceChange,
    WorkspaceOpen,
)
from activities.finish_contracts import FinishNotice
from runtime.base.addresses import SCHEME
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.models import SCRIPTED
from runtime.base.spec.servers import ServerSpec
from runtime.tools.allowed import NotAllowed, files_of, is_below

_SHELL = "/bin/sh"
_PLAIN = re.compile(r"[\w./@:,+ -]*")
"""Characters that mean themselves to a shell, and blanks."""


@dataclass(frozen=True)
class Bounds(Interceptor):
    """Has activities refuse paths that are not in or below one of ``directories``."""

    directories: tuple[Path, ...]

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Bounded(next, tuple(directory.resolve() for directory in self.directories))


class _Bounded(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, directories: tuple[Path, ...]) -> None:
        super().__init__(next)
        self._directories = directories

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        # In a thread: to look for modules, and to follow links, is to ask the disk.
        await asyncio.to_thread(self._check, input.args)
        return await self.next.execute_activity(input)

    def _check(self, arguments: Sequence[Any]) -> None:
        for what, path in chain.from_iterable(map(named_by, arguments)):
            if path is None or not is_below(path, self._directories):
                named = what if path is None else f"{what} {path}"
                raise not_allowed(NotAllowed.told(named, self._directories))


def not_allowed(why: NotAllowed | str) -> ApplicationError:
    """The end of an activity that was asked for what its worker was not allowed."""
    return ApplicationError(str(why), type=NotAllowed.__name__, non_retryable=True)


def named_by(argument: Any) -> Iterator[tuple[str, Path | None]]:
    """The paths that an activity's argument names, each with what it is; None for what is in no
    directory that could be allowed.
    """
    match argument:
        case TurnCall(model=model) | SummaryCall(model=model):
            yield from _script(model)
        case ReadBatch(workspace=workspace, held=held, summary_model=model, servers=servers):
            if held is None:
                yield "the workspace", Path(workspace)
            yield from _script(model)
            for server in servers:
                yield from _command(server)
        case WorkspaceOpen(workspace=workspace, writable=writable):
            if workspace and not workspace.startswith(SCHEME):
                yield "the workspace", Path(workspace)
            yield from _unbounded(writable.sandbox)
        case FileCall(workspace=workspace, held=None):
            yield "the workspace", Path(workspace)
        case WorkspaceChange(tool=call, held=held, writable=writable):
            if call is not None:
                yield from named_by(call)
            yield from _unbounded(held.sandbox, writable.sandbox)
        case FinishNotice(order=OnFinish(command=str() as command, directory=directory)):
            yield "the directory of on_finish", Path(directory)
            yield "the program of on_finish", Path(directory) / _program(command)
        case ToolRequest(server=ServerSpec() as server):
            yield from _command(server)
        case ServersQuestion(servers=servers):
            for server in servers:
                yield from _command(server)
        case CheckRequest(check=check, workspace=workspace):
            if workspace:
                yield "the workspace", Path(workspace)
            yield from _module(check.target, check.search_path)
        case ToolRequest(tool=tool, search_path=search_path):
            yield from _module(tool, search_path)


def _program(command: str) -> str:
    """What a line for the shell runs: its first word, if it is one program's path, with arguments
    that the shell takes as they are; else the shell, which may run anything.
    """
    first, *_ = [*command.split(), ""]
    plain = _PLAIN.fullmatch(command) is not None
    return first if plain and "/" in first else _SHELL


def _module(tool: str, search_path: str) -> Iterator[tuple[str, Path | None]]:
    what = f"the module of tool {tool}"
    # One that is not there is looked for on Python's own path, which is nobody's order.
    yield from ((what, file) for file in files_of(tool.partition(":")[0], search_path) or (None,))
    # What it imports is looked for there as well.
    yield what, Path(search_path)


def _unbounded(*sandboxes: str) -> Iterator[tuple[str, Path]]:
    """The shell of commands that no sandbox holds: it may run anything."""
    if "none" in sandboxes:
        yield "the shell of commands without a sandbox", Path(_SHELL)


def _command(server: ServerSpec) -> Iterator[tuple[str, Path]]:
    if server.command:
        program = shutil.which(server.command[0]) or server.command[0]
        yield f"the command of server {server.name}", Path(server.directory) / program


def _script(model: dict[str, Any] | None) -> Iterator[tuple[str, Path]]:
    name = str(model["name"]) if model is not None else ""
    if name.startswith(SCRIPTED):
        yield "the script", Path(name.removeprefix(SCRIPTED))
