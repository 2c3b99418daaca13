"""What can be told of an MCP server before it is started or asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from runtime.base.places import is_directory, is_file
from runtime.base.quoted import shown
from runtime.base.spec.servers import ServerSpec


def missing(server: ServerSpec, environment: Mapping[str, str]) -> list[str]:
    """The variables that the server is to get, or its token, and that are not set."""
    wanted = (*server.env, *([server.token] if server.token else []))
    return [name for name in wanted if name not in environment]


def faults(
    server: ServerSpec, environment: Mapping[str, str]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Why it cannot be started or asked with these variables, each with the key that names what
    lacks, below the server's.
    """
    unset = missing(server, environment)
    for index, name in enumerate(server.env):
        if name in unset:
            yield ("env", index), _set(name)
    if server.token in unset:
        yield ("token",), _set(server.token)
    if not server.command:
        return
    if not is_directory(server.directory):
        yield ("directory",), f"no such directory: {shown(server.directory)}"
    elif not os.access(server.directory, os.X_OK):
        yield ("directory",), f"nothing may be started in {shown(server.directory)}"
    elif fault := _program_fault(server, environment):
        yield ("command", 0), f"expected a program, got {shown(server.command[0])}, {fault}"


def _set(name: str) -> str:
    return f"set {name} in the environment of this command"


def _program_fault(server: ServerSpec, environment: Mapping[str, str]) -> str | None:
    """Why the program cannot be run: it is looked for as the system does, which is in the server's
    directory by then.
    """
    program = server.command[0]
    if "/" in program:
        path = Path(server.directory) / program
        if not is_file(path):
            return "which is none"
        return None if os.access(path, os.X_OK) else "which may not be run"
    for directory in os.get_exec_path(environment):
        path = Path(server.directory) / directory / program
        if is_file(path) and os.access(path, os.X_OK):
            return None
    return "which is in no directory of PATH"
