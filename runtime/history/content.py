"""What messages and results are made of: text, and places where a live context object is
rendered.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runtime.base.values import Value


class TextPart(Value):
    """A stretch of plain text."""

    type: Literal["text"] = "text"
    text: str


class NodePart(Value):
    """A place where the projection renders the live node ``obj_id`` (docs/design.md section 5)."""

    type: Literal["node"] = "node"
    obj_id: str


ContentPart = Annotated[TextPart | NodePart, Field(discriminator="type")]
Content = tuple[ContentPart, ...]


def text_content(text: str) -> Content:
    """Content that is only ``text``."""
    return (TextPart(text=text),)


def plain_text(content: Content) -> str:
    """The text of ``content``; a node stands as ``<node ID>``, since its rendering is the
    projection's.
    """
    return "".join(
        part.text if isinstance(part, TextPart) else f"<node {part.obj_id}>" for part in content
    )
