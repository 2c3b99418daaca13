"""The pages in which an MCP server lists what it has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from mcp_types import PaginatedRequestParams, PaginatedResult

Page = TypeVar("Page", bound=PaginatedResult)

MOST_PAGES = 20
"""A server may always have another page."""


async def pages(ask: Callable[..., Awaitable[Page]]) -> AsyncIterator[tuple[Page, bool]]:
    """The pages that ``ask`` gives by their cursors (``params``), each with whether the server has
    another; a cursor that came before leads round in a circle, to none.
    """
    cursor: str | None = None
    seen: set[str | None] = set()
    for _ in range(MOST_PAGES):
        page = await ask(params=PaginatedRequestParams(cursor=cursor))
        cursor = page.next_cursor
        goes_on = cursor is not None and cursor not in seen
        yield page, goes_on
        if not goes_on:
            return
        seen.add(cursor)
