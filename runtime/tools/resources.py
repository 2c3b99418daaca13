"""What an MCP server has to read: what a job is told of it, and a resource as it crosses to the
worker. All bounded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from pydantic import ValidationError

from runtime.base.characters import as_unicode
from runtime.base.spec.servers import ServerResource
from runtime.tools.pages import Page, pages
from runtime.tools.schemas import bounded_line, size_of

if TYPE_CHECKING:
    from mcp import ClientSession

MOST_TOLD = 50
MOST_TOLD_BYTES = 8 * 1024
"""Resources that a job is told of, and the bytes of JSON of that."""
MOST_LISTED = 1_000
MOST_URI = 300
MOST_DOC = 120
MOST_TEXT = 4 << 20
"""Characters of one resource; what is beyond is counted."""
MOST_NAMED = 20
"""Resources that an error names."""

Listed = Resource | ResourceTemplate


@dataclass
class Told:
    """What a server says that it has to read, ``all`` that it told, and what ``broke`` that off."""

    all: list[Listed]
    broke: MCPError | ValidationError | None = None


async def resources_of(session: ClientSession) -> Told:
    """All that the server lists, templates last: many have no templates, and no list of them."""
    resources = await _listed(session.list_resources, lambda page: page.resources)
    templates = await _listed(session.list_resource_templates, lambda page: page.resource_templates)
    return Told([*resources.all, *templates.all], resources.broke)


async def _listed(
    ask: Callable[..., Awaitable[Page]], on: Callable[[Page], Sequence[Listed]]
) -> Told:
    """One of the server's lists, as far as it tells it."""
    listed: dict[str, Listed] = {}
    broke: MCPError | ValidationError | None = None
    try:
        async for page, _ in pages(ask):
            for one in on(page):
                listed.setdefault(_uri(one), one)
            if len(listed) >= MOST_LISTED:
                break
    except (MCPError, ValidationError) as error:
        # One with templates alone may have no such list.
        unknown = isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND
        broke = None if unknown else error
    return Told(list(listed.values())[:MOST_LISTED], broke)


def told_resources(
    resources: Sequence[Listed],
) -> tuple[tuple[ServerResource, ...], int]:
    """Those that a job is told of, and how many more there are."""
    told: list[ServerResource] = []
    size = 0
    for one in resources:
        known = _told(one)
        if known is None:
            continue
        size += size_of(known.model_dump(mode="json"))
        if len(told) == MOST_TOLD or size > MOST_TOLD_BYTES:
            break
        told.append(known)
    return tuple(told), len(resources) - len(told)


def _told(one: Listed) -> ServerResource | None:
    """None for one whose URI no statement could be shown."""
    uri = _uri(one)
    if len(uri) > MOST_URI or bounded_line(uri, MOST_URI) != uri or '"' in uri or "\\" in uri:
        return None
    doc = bounded_line(one.description or one.title or one.name, MOST_DOC)
    return ServerResource(uri=uri, doc=doc, template=isinstance(one, ResourceTemplate))


def _uri(one: Listed) -> str:
    return one.uri if isinstance(one, Resource) else one.uri_template


def listed_text(resources: Sequence[Listed]) -> dict[str, str]:
    """The list itself, a line each, in the form of ``content_of``."""
    lines = [f"{bounded_line(_uri(one), MOST_URI)}  {_doc(one)}".rstrip() for one in resources]
    return {"text": "".join(f"{line}\n" for line in lines), "kind": "text/plain", "note": ""}


def _doc(one: Listed) -> str:
    return bounded_line(one.description or one.title or one.name, MOST_DOC)


def hint(resources: Sequence[Listed], server: str) -> str:
    """What there is instead of a resource that there is not."""
    if not resources:
        return f"the server {server} lists nothing to read"
    named = [bounded_line(_uri(one), MOST_DOC) for one in resources[:MOST_NAMED]]
    more = len(resources) - len(named)
    return f"it has {', '.join(named)}" + (f" and {more} more" if more else "")


def content_of(result: ReadResourceResult) -> dict[str, str]:
    """A resource's ``text``, or its ``blob`` in base64; its ``kind``, a media type; and a ``note``
    on what is not here.
    """
    contents = result.contents
    if len(contents) == 1 and isinstance(only := contents[0], BlobResourceContents):
        if len(only.blob) > MOST_TEXT:
            return _bounded(f"[{len(only.blob)} characters of base64]", "text/plain")
        return {"blob": only.blob, "kind": only.mime_type or "", "note": ""}
    if len(contents) == 1 and isinstance(only, TextResourceContents):
        return _bounded(only.text, only.mime_type or "")
    parts = [f"# {bounded_line(one.uri, MOST_URI)}\n{_text(one)}\n" for one in contents]
    return _bounded("\n".join(parts), "text/plain")


def _text(one: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(one, TextResourceContents):
        return one.text
    return f"[{len(one.blob)} characters of base64]"


def _bounded(text: str, kind: str) -> dict[str, str]:
    beyond = len(text) - MOST_TEXT
    note = f"the first {MOST_TEXT:,} characters of {len(text):,}" if beyond > 0 else ""
    # Lone surrogates, which JSON can spell, are no UTF-8.
    return {"text": as_unicode(text[:MOST_TEXT]), "kind": kind, "note": note}
