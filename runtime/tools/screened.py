"""What a server lists as its tools, without what is none: the ``mcp`` package takes no tool of a
page on which one is wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, ListToolsResult
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from runtime.tools.schemas import bounded_line

MOST_REASON = 300
_WRONG = "holdfast/wrong"
"""Where a page says what was wrong with tools that it has no more."""


class Screen:
    """Goes ``over`` a server's transport; ``version`` is that of the protocol, once it is known."""

    def __init__(self) -> None:
        self.version = ""

    @asynccontextmanager
    async def over(
        self, transport: AbstractAsyncContextManager[Any]
    ) -> AsyncIterator[tuple[Any, Any]]:
        """The transport's streams of messages."""
        async with transport as (read, write):
            yield _Reading(read, self), write

    def passed(self, received: Any) -> Any:
        """What is handed on of a message."""
        answer = received.message if isinstance(received, SessionMessage) else None
        if not isinstance(answer, JSONRPCResponse) or not self.version:
            return received
        result = answer.result
        if not isinstance(result.get("tools"), list):
            return received
        wrong = self._wrong_in(result)
        tools = [tool for place, tool in enumerate(result["tools"]) if place not in wrong]
        said = result.get("_meta")
        meta = {**(said if isinstance(said, dict) else {}), _WRONG: list(wrong.values())}
        told = answer.model_copy(update={"result": {**result, "tools": tools, "_meta": meta}})
        return replace(received, message=told)

    def _wrong_in(self, result: dict[str, Any]) -> dict[int, str]:
        """What is wrong first with each tool that is none, by its place."""
        wrong: dict[int, str] = {}
        # As the package checks a page.
        for check in (
            lambda: validate_server_result("tools/list", self.version, result),
            lambda: ListToolsResult.model_validate(result, by_name=False),
        ):
            try:
                with suppress(KeyError):
                    check()
            except ValidationError as error:
                for one in error.errors(include_url=False, include_context=False):
                    where = one["loc"]
                    if where[0] == "tools" and len(where) > 1:
                        text = f"{'.'.join(map(str, where))}: {one['msg']}"
                        wrong.setdefault(int(where[1]), bounded_line(text, MOST_REASON))
        return wrong


class _Reading:
    """A stream of messages, as the package reads it."""

    def __init__(self, inner: Any, screen: Screen) -> None:
        self._inner, self._screen = inner, screen

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        left: bool | None = await self._inner.__aexit__(*error)
        return left

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._screen.passed(await self._inner.__anext__())

    async def receive(self) -> Any:
        """The next message."""
        return self._screen.passed(await self._inner.receive())

    async def aclose(self) -> None:
        """Read no more."""
        await self._inner.aclose()

    @property
    def last_context(self) -> Any:
        """Whose the last message was, where the stream says so."""
        return getattr(self._inner, "last_context", None)


def wrong_on(page: ListToolsResult) -> list[str]:
    """What was wrong with the tools that a page has no more."""
    return list((page.meta or {}).get(_WRONG, ()))
