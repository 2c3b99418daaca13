"""One connection to an MCP server, through the ``mcp`` package: what it offers, and calls of it.

Nothing that a server says is believed: what it lists is bounded, a tool that is not the one that
the job was told of is not called, and of a call that did not come to an end it is told that nobody
knows its outcome.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    Tool,
)
from pydantic import ValidationError
from referencing.exceptions import Unresolvable

from runtime.base.characters import as_unicode
from runtime.base.digests import digest_of
from runtime.base.effect_classes import EffectClass
from runtime.base.result_schemas.bounded import worst_error_by_foreign
from runtime.base.spec.servers import ServerListing, ServerSpec, ServerTool
from runtime.tools.calls import MAX_RESULT_BYTES, Outcome, as_read, crossing
from runtime.tools.http import REFUSED, HttpClient
from runtime.tools.pages import pages
from runtime.tools.resources import (
    MOST_URI,
    Told,
    content_of,
    hint,
    listed_text,
    resources_of,
    told_resources,
)
from runtime.tools.schemas import bounded_line, method_name, method_stub, size_of
from runtime.tools.screened import Screen, wrong_on
from runtime.tools.stdio import MOST_BYTES, UNREAD, Stdio

MOST_TOOLS = 100
MOST_LISTING = 64 * 1024
"""Bytes of JSON of what a job is told of a server."""
MOST_DOC = 300
MOST_ABOUT = 1_000
MOST_TEXT = 256 * 1024
"""Characters of a result that is text."""

_LONGER = 30.0
"""Seconds for which an answer is waited for beyond a call's time: whoever called says that it is
over.
"""

NO_ANSWER = "gave an answer that is none"

_RESERVED = range(-32768, -31999)
_NOT_MADE = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH})


class NotOffered(Exception):
    """The server does not offer the tool any more, or another one by its name."""


class Broken(Exception):
    """A call came to no end that the server told; ``over``: nor will any other."""

    def __init__(self, why: str, *, over: bool) -> None:
        super().__init__(why)
        self.over = over


@dataclass
class Session:
    """A connection."""

    spec: ServerSpec
    client: Client
    stdio: Stdio | None = None

    def __post_init__(self) -> None:
        # The package's own check takes as long as a pattern of the schema does: ``wrong_result``.
        self.client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]

    async def listing(self) -> ServerListing:
        """What the server offers, bounded."""
        can = self.client.server_capabilities
        # One that has resources alone may take the question for its tools for an error.
        only_reads = can.resources is not None and can.tools is None
        tools, left_out, wrong = ([], 0, []) if only_reads else await self._tools()
        if wrong and not tools:
            raise NotOffered(f"the server {self.spec.name} lists what are no tools: {wrong[0]}")
        wrong += [why for why in map(never_called, tools) if why]
        left_out += len(wrong)
        listed: list[ServerTool] = []
        names: frozenset[str] = frozenset()
        about = bounded_line(self.client.instructions, MOST_ABOUT)
        size = size_of(about)
        for tool in tools:
            if never_called(tool):
                continue
            one = described(tool, names, self.spec)
            size += size_of(one.model_dump(mode="json"))
            if size > MOST_LISTING or len(listed) == MOST_TOOLS:
                left_out += 1
                continue
            listed.append(one)
            names |= {one.name}
        resources, more = told_resources((await self.resources()).all)
        return ServerListing(
            name=self.spec.name,
            tools=tuple(listed),
            about=about,
            left_out=left_out,
            wrong=wrong[0] if wrong else "",
            resources=resources,
            more_resources=more,
        )

    async def resources(self) -> Told:
        """What it says that it has to read; nothing if it cannot be asked."""
        if self.client.server_capabilities.resources is None:
            return Told([])
        return await resources_of(self.client.session)

    async def read(self, uri: str) -> dict[str, str]:
        """A resource as ``content_of`` tells it; of no URI the list of all.

        Raises:
            NotOffered: if the server has no such resource.
            Broken: if nobody knows.
        """
        if not uri:
            listed = await self.resources()
            if listed.broke is not None:
                raise self._unread(listed.broke) from listed.broke
            return listed_text(listed.all)
        try:
            result = await self.client.session.read_resource(uri)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and _is_its_word(error):
                there_is = hint((await self.resources()).all, self.spec.name)
                raise NotOffered(f"{crossing(error.message)} ({there_is})") from error
            raise self._unread(error) from error
        return content_of(result)

    def _unread(self, error: MCPError | ValidationError) -> Broken:
        """That nobody knows what there is to read."""
        if isinstance(error, ValidationError):
            return Broken(NO_ANSWER, over=False)
        if self.stdio is not None and self.stdio.ended:
            return Broken(self.stdio.ended, over=True)
        return Broken(_what_came(error), over=_is_over(error))

    async def offered(self, name: str, digest: str) -> Tool:
        """The tool, as the server offers it now.

        Raises:
            NotOffered: if it is not the one of ``digest``.
        """
        # Asked for anew: a server may give a name to another tool at any time.
        tools, _, _ = await self._tools()
        tool = next((tool for tool in tools if tool.name == name), None)
        if tool is None:
            raise NotOffered(f"the server {self.spec.name} has no tool {name!r} any more")
        if digest_of_tool(tool) != digest:
            raise NotOffered(
                f"the tool {name!r} of the server {self.spec.name} is another than when the job"
                " began"
            )
        return tool

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> Outcome:
        """What came of a call.

        Raises:
            Broken: if nobody knows.
        """
        try:
            # The client's own method sends a call again where the server asks something first, and
            # where it says that the call's headers are not those of the tool.
            result = await self.client.session.call_tool(
                tool.name, arguments, allow_input_required=True
            )
        except MCPError as error:
            # With JSON-RPC's own codes nobody knows whether the tool ran, but for those that
            # refuse the call before; any other code is the tool's own word.
            if error.code in REFUSED:
                return _failed(f"the server {self.spec.name} said: {error.message}")
            if error.code in _NOT_MADE or error.code not in _RESERVED:
                return _failed(f"{self.spec.name}.{tool.name}: {error.message}")
            gone = self.stdio is not None and self.stdio.ended
            why = self.stdio.ended if gone and self.stdio else _what_came(error)
            raise Broken(why, over=_is_over(error)) from error
        except ValidationError as error:
            raise Broken(NO_ANSWER, over=False) from error
        if isinstance(result, InputRequiredResult):
            raise Broken("asked something before it would answer, and was told nothing", over=False)
        if (wrong := wrong_result(tool, result)) is not None:
            return _failed(f"{self.spec.name}.{tool.name}: {wrong}")
        return told(result, f"{self.spec.name}.{tool.name}")

    async def _tools(self) -> tuple[list[Tool], int, list[str]]:
        """All that it lists, how many pages it would go on with beyond, and what is wrong with what
        are no tools.
        """
        tools: dict[str, Tool] = {}
        wrong: list[str] = []
        beyond = 0
        async for page, goes_on in pages(self.client.session.list_tools):
            for tool in page.tools:
                # A call names a tool: a second one of its name cannot be called.
                tools.setdefault(tool.name, tool)
            wrong += wrong_on(page)
            beyond = int(goes_on)
        return list(tools.values()), beyond, wrong


@asynccontextmanager
async def connected(spec: ServerSpec) -> AsyncIterator[Session]:
    """A connection to a server, which is started if it is one of a command.

    Raises:
        ConnectionError: a command's server ended before it answered.
    """
    screen = Screen()
    if spec.url:
        headers = {"Authorization": f"Bearer {os.environ[spec.token]}"} if spec.token else {}
        timeout = httpx2.Timeout(30.0, read=spec.timeout + _LONGER)
        async with (
            HttpClient(headers=headers, timeout=timeout) as http,
            Client(
                screen.over(
                    streamable_http_client(
                        spec.url, http_client=http, max_sse_event_size=MOST_BYTES
                    )
                )
            ) as client,
        ):
            screen.version = client.session.protocol_version or ""
            yield Session(spec, client)
        return
    stdio = Stdio(spec.command, spec.directory)
    async with AsyncExitStack() as held:
        try:
            client = await held.enter_async_context(Client(screen.over(stdio.connected())))
        except Exception as error:
            if stdio.ended:
                # The package knows of a closed connection, and not of the program behind it.
                raise ConnectionError(f"it {stdio.ended}") from error
            raise
        screen.version = client.session.protocol_version or ""
        yield Session(spec, client, stdio)


def described(tool: Tool, taken: frozenset[str], spec: ServerSpec) -> ServerTool:
    """A tool as a statement sees it."""
    name = method_name(tool.name, taken)
    return ServerTool(
        name=name,
        tool=tool.name,
        stub=method_stub(name, tool.input_schema, tool.output_schema),
        doc=bounded_line(tool.description or tool.title, MOST_DOC),
        effect=spec.effects.get(tool.name) or effect_of(tool),
        digest=digest_of_tool(tool),
    )


def never_called(tool: Tool) -> str:
    """Why no arguments are those of a tool; empty where some may be."""
    schema = tool.input_schema
    if schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return ""
    allowed, required = schema.get("properties") or {}, schema.get("required") or []
    unmet = next((name for name in required if name not in allowed), None)
    return f"{tool.name}: it requires {unmet!r}, and does not allow it"[:MOST_DOC] if unmet else ""


def effect_of(tool: Tool) -> EffectClass:
    """How often a tool may run, by the server's own word; at most once if it says nothing."""
    hints = tool.annotations
    if hints is None:
        return EffectClass.ONCE
    if hints.read_only_hint:
        return EffectClass.PURE
    # What does not destroy may still add twice.
    return EffectClass.IDEMPOTENT if hints.idempotent_hint else EffectClass.ONCE


def digest_of_tool(tool: Tool) -> str:
    """The digest of what a call of it rests on: its schemas, and what it says of its effects."""
    shape = tool.model_dump(
        mode="json", include={"name", "input_schema", "output_schema", "annotations"}
    )
    return digest_of(shape)


def wrong_arguments(tool: Tool, arguments: dict[str, Any]) -> Outcome | None:
    """What is wrong with a call's arguments by the tool's schema, or that it leads out of itself;
    None if nothing is.
    """
    try:
        wrong = _wrong_by(tool.input_schema, arguments)
    except Unresolvable as error:
        return _failed(
            f"{tool.name}(): its schema refers to {bounded_line(error.ref, MOST_DOC)}, which is not"
            " in it: arguments are checked by what the schema has itself"
        )
    if wrong is None:
        return None
    return Outcome(error_type="TypeError", error_message=crossing(f"{tool.name}(): {wrong}"))


def wrong_result(tool: Tool, result: CallToolResult) -> str | None:
    """What is wrong with a result by the tool's schema; None if nothing is."""
    if tool.output_schema is None or result.is_error:
        return None
    if "structured_content" not in result.model_fields_set:
        return f"Tool {tool.name} has an output schema but did not return structured content"
    try:
        wrong = _wrong_by(tool.output_schema, result.structured_content)
    except Unresolvable as error:
        return f"Invalid schema for tool {tool.name}: {error}"
    return wrong and f"Invalid structured content returned by tool {tool.name}: {wrong}"


def _wrong_by(schema: dict[str, Any], value: Any) -> str | None:
    """Where a value is wrong by a schema, and how; None if it is not, or that cannot be told in
    bounded work, as of a pattern that RE2 has not: a slow one would block all calls of the server.

    Raises:
        Unresolvable: if it refers to what is not in it, which is not fetched.
    """
    try:
        worst = worst_error_by_foreign(schema, value)
    except Unresolvable:
        raise
    except Exception:  # noqa: BLE001 a schema that is none says nothing of the value
        return None
    if worst is None:
        return None
    return f"{''.join(f'[{part!r}]' for part in worst.absolute_path)} {worst.message}"


def told(result: CallToolResult, name: str) -> Outcome:
    """A result as a statement gets it: what is structured as it is, else its text."""
    text = "\n".join(_text(block) for block in result.content)
    if result.is_error:
        return _failed(f"{name}: {text}")
    if result.structured_content is not None and "structured_content" in result.model_fields_set:
        value = result.structured_content
        try:
            size = size_of(value)
            as_read(json.dumps(value).encode())
        except (ValueError, RecursionError) as error:
            return _failed(f"{name}: its structured content is no JSON: {error}")
        if size > MAX_RESULT_BYTES:
            return Outcome(
                error_type="ValueError",
                error_message=(
                    f"{name}() gave {size} bytes of JSON; at most {MAX_RESULT_BYTES} fit: ask for"
                    " less"
                ),
            )
        return Outcome(value=value)
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n[{len(text) - MOST_TEXT} characters more]"
    return Outcome(value=as_unicode(text))


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Check no result."""


def _text(block: Any) -> str:
    if isinstance(block, TextContent):
        return block.text
    inner = getattr(block, "resource", None)
    if isinstance(text := getattr(inner, "text", None), str):
        return text
    if isinstance(block, ResourceLink):
        return f"[{bounded_line(f'{block.type} {block.uri}', MOST_URI)}]"
    data = getattr(block, "data", None) or getattr(inner, "blob", None) or ""
    kind = getattr(block, "mime_type", None) or getattr(inner, "mime_type", None) or ""
    return f"[{bounded_line(f'{block.type} {kind}', 80)}, {len(data)} characters of base64]"


def _failed(message: str) -> Outcome:
    return Outcome(error_type="RuntimeError", error_message=crossing(message))


def _what_came(error: MCPError) -> str:
    """What the server did. What could not be read is told by the package in words of its own."""
    return NO_ANSWER if error.message.startswith(UNREAD) else f"said: {error.message}"


def _is_over(error: MCPError) -> bool:
    """Whether the connection is of no use any more."""
    return "onnection closed" in error.message or "Session terminated" in error.message


def _is_its_word(error: MCPError) -> bool:
    """Whether the server says that there is no such resource. An internal error is that it failed,
    or its connection.
    """
    return error.code not in {INTERNAL_ERROR, *REFUSED} and not _is_over(error)
