"""Names that a statement writes otherwise than they are: bytes that are no UTF-8, and a backslash
(``runtime.workspace.walk``).
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(rb"%(5C|[89A-F][0-9A-F])")


def unescape_name(name: str) -> str:
    """The raw file name whose escaped form is ``name``."""
    raw = _ESCAPED.sub(
        lambda match: bytes([int(match[1], 16)]), name.encode("utf-8", "surrogateescape")
    )
    return raw.decode("utf-8", "surrogateescape")


def spellings(name: str) -> tuple[str, ...]:
    """The names that ``name`` may stand for: as it is written first."""
    return tuple(dict.fromkeys((name, unescape_name(name))))
