"""Addresses in the archive: ``holdfast://JOB@N`` is turn N of a job, as views and jobs files name
it.
"""

from __future__ import annotations

import re

SCHEME = "holdfast://"

ARCHIVED = re.compile(
    r"holdfast://(?P<job>[^@\s]+?)(?:@(?P<turn>\d{1,9})(?:/effect/(?P<effect>\d{1,6})"
    r"(?:/(?P<stream>stdout|stderr))?)?)?/?"
)
"""What a view may show: a job, one of its turns, an effect of a turn, what a command printed."""

WORKSPACE_OF = re.compile(r"holdfast://(?P<job>[^@\s]+)@(?P<turn>\d{1,9})/?")
"""The workspace of a job after a turn."""

RESOURCE = "mcp://"
"""How the address of an MCP server's resource begins: ``mcp://SERVER/URI``."""


def server_in(path: str) -> str | None:
    """The MCP server whose resource a path names; None if it names something else."""
    return path.removeprefix(RESOURCE).partition("/")[0] if path.startswith(RESOURCE) else None
