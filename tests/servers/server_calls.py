"""Calls of what an MCP server offers."""

from __future__ import annotations

from typing import Any

from activities.contracts import ToolRequest
from runtime.base.spec.servers import ServerSpec, ServerTool
from runtime.base.values import JobKey

KEY = JobKey(batch="b", job="j")


def call_of(server: ServerSpec, tool: ServerTool, **more: Any) -> ToolRequest:
    """A statement's call of a tool as the server offered it; ``more`` are further fields."""
    fields: dict[str, Any] = {"key": KEY, "turn": 3, "effect": 0, "search_path": ""} | more
    return ToolRequest(
        tool=tool.tool, often=tool.effect, server=server, digest=tool.digest, **fields
    )
