"""Replies of OpenAI's chat protocol in which parts of a text stand where the text should, as
Mistral's and some of Databricks' do, or nothing where a chunk has something.

Of litellm's readers some know the parts of their own provider; the others leave them out of a
stream, or fail.
"""

from __future__ import annotations

from typing import Any

CONTENT = rb"\"content\"\s*:\s*\[|\"(choices|delta)\"\s*:\s*null"
"""A pattern of what may be such content."""

_TEXTS = frozenset({"text", "output_text"})


def may_lack_content(event: bytes) -> bool:
    """Whether an event of a stream may be a chunk that has no choices, or a choice without delta.

    Most that are asked have both, and are not read for it.
    """
    chunk = b'"chat.completion.chunk"' in event
    return chunk and not (b'"choices"' in event and b'"delta"' in event)


def replace_odd_content(value: Any) -> bool:
    """Put a text in the place of its parts in a reply, or in a chunk of one; whether there were
    any.
    """
    if not isinstance(value, dict):
        return False
    chunk = value.get("object") == "chat.completion.chunk"
    # What tells of an error in their place is no chunk for litellm either.
    if chunk and value.get("choices") is None and "error" not in value:
        value["choices"] = []
        return True
    choices = value.get("choices")
    listed = choices if isinstance(choices, list) else ()
    # Each of them, also behind one where something was replaced.
    replaced = [_replaced(choice, chunk) for choice in listed if isinstance(choice, dict)]
    return any(replaced)


def _replaced(choice: dict[str, Any], chunk: bool) -> bool:
    if chunk and choice.get("delta") is None:
        choice["delta"] = {}
        return True
    said = choice.get("delta") or choice.get("message")
    if not isinstance(said, dict) or not isinstance(said.get("content"), list):
        return False
    texts = [_text(part) for part in said["content"]]
    # A piece of a thought alone is left to who knows it.
    if chunk and not any(texts):
        return False
    said["content"] = "".join(texts)
    return True


def _text(part: Any) -> str:
    """The text of a part, empty for one of another kind, such as a thought."""
    if isinstance(part, dict):
        part = part.get("text") if part.get("type") in _TEXTS else None
    return part if isinstance(part, str) else ""
