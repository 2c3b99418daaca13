"""Responses as litellm can read them, where it makes nothing of what came.

What is archived is what came.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from activities._odd_content import CONTENT, may_lack_content, replace_odd_content
from activities._odd_usage import USAGE, replace_odd_usage
from activities._plain_events import unmistakable

_ODD = re.compile(USAGE + b"|" + CONTENT)


def readable_event(event: bytes) -> bytes:
    """An event of a stream, as ``readable_body`` gives it."""
    # Most events have none of it, and are not read for it.
    odd = _ODD.search(event) is not None or may_lack_content(event)
    spared = readable_body(event) if odd else None
    return event if spared is None else unmistakable(spared)


def readable_body(body: bytes) -> bytes | None:
    """The response with nothing used in place of each usage that cannot be read, and a text in the
    place of its parts; None if all can be read.

    It is one JSON object, or a stream of them in lines.
    """
    with suppress(ValueError, RecursionError):
        value = json.loads(body)
        return _encoded(value) if _replaced(value) else None
    lines = [_line(line) for line in body.split(b"\n")]
    if all(new is None for _, new in lines):
        return None
    return b"\n".join(line if new is None else new for line, new in lines)


def _line(line: bytes) -> tuple[bytes, bytes | None]:
    """A line of a stream, and what stands in for it."""
    head, colon, data = line.partition(b"data:") if line.startswith(b"data:") else (b"", b"", line)
    with suppress(ValueError, RecursionError):
        value = json.loads(data)
        if _replaced(value):
            return line, head + colon + b" " * bool(colon) + _encoded(value)
    return line, None


def _replaced(value: Any) -> bool:
    return any([replace_odd_usage(value), replace_odd_content(value)])


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
