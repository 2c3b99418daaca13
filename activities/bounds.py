"""Where on a worker's machine an order may take scripts, tools and workspaces from.

Orders are signed, so they say what their owner said, and by default a worker takes what they name.
A worker that is given directories (``holdfast worker --allow DIR``) takes nothing from elsewhere,
whoever has the key. Symbolic links are followed before a path is judged.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
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
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.servers import ServerSpec

SCRIPTED = "scripted/"

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
        for argument in input.args:
            for what, path in named_by(argument):
                # In a thread: to follow links is to ask the disk.
                if not await asyncio.to_thread(self._allows, path):
                    allowed = ", ".join(map(str, self._directories))
                    raise ApplicationError(
                        f"{what} {path} is not below a directory that this worker was allowed:"
                        f" {allowed}",
                        type="NotAllowed",
                        non_retryable=True,
                    )
        return await self.next.execute_activity(input)

    def _allows(self, path: Path) -> bool:
        # Links first: one below an allowed directory may lead out of it.
        real = path.resolve()
        return any(real.is_relative_to(directory) for directory in self._directories)


def named_by(argument: Any) -> Iterator[tuple[str, Path]]:
    """The paths that an activity's argument names, each with what it is."""
    match argument:
        case TurnCall(model=model) | SummaryCall(model=model):
            yield from _script(model)
        case ReadBatch(workspace=workspace, held=held, summary_model=model, servers=servers):
            if held is None:
                yield "the workspace", Path(workspace)
            yield from _script(model)
            for server in servers:
                yield from _command(server)
        case WorkspaceOpen(workspace=workspace) if workspace.startswith("/"):
            yield "the workspace", Path(workspace)
        case FileCall(workspace=workspace, held=None):
            yield "the workspace", Path(workspace)
        case WorkspaceChange(tool=ToolRequest() as call):
            yield from named_by(call)
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
            yield _module(check.target, check.search_path)
        case ToolRequest(tool=tool, search_path=search_path):
            yield _module(tool, search_path)


def _program(command: str) -> str:
    """What a line for the shell runs: its first word, if it is one program's path, with arguments
    that the shell takes as they are; else the shell, which may run anything.
    """
    first, *_ = [*command.split(), ""]
    plain = _PLAIN.fullmatch(command) is not None
    return first if plain and "/" in first else _SHELL


def _module(tool: str, search_path: str) -> tuple[str, Path]:
    top = tool.partition(":")[0].partition(".")[0]
    folder = Path(search_path)
    module = folder / f"{top}.py"
    return f"the module of tool {tool}", module if module.exists() else folder / top


def _command(server: ServerSpec) -> Iterator[tuple[str, Path]]:
    if server.command:
        program = shutil.which(server.command[0]) or server.command[0]
        yield f"the command of server {server.name}", Path(server.directory) / program


def _script(model: dict[str, Any] | None) -> Iterator[tuple[str, Path]]:
    name = str(model["name"]) if model is not None else ""
    if name.startswith(SCRIPTED):
        yield "the script", Path(name.removeprefix(SCRIPTED))
