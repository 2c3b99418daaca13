"""What stands in place of a masked value: ``[masked:OPENAI_API_KEY:9f86d081884c7d65]``. Pure.

What a statement puts together is masked where there is no key, by its form: ``[masked:api-key]``.

The last part is the start (64 bits) of HMAC-SHA256 of the value under a key that only the
installation has: who holds the key and a value can tell that it is the one that stood there, and
equal values have equal marks. Without the key the mark says nothing about the value.
"""

from __future__ import annotations

import hashlib
import hmac
import re

_MARK = r"\[masked:([A-Za-z0-9_.-]{1,100})(?::([0-9a-f]{16}))?\]"
RAW_MARK = re.compile(_MARK.encode())
MARK = re.compile(_MARK)
MASK = "[masked]"
"""In place of what not even its name is told of, as a part of a URL."""


def mark_of(name: str, value: bytes, key: bytes) -> str:
    """The mark of ``value``.

    Line breaks of the value stay behind it, so the lines after it keep their numbers.
    """
    code = hmac.new(key, value, hashlib.sha256).hexdigest()[:16]
    return f"[masked:{name}:{code}]" + "\n" * value.count(b"\n")


def keyless_mark(name: str, value: bytes) -> bytes:
    """The mark of a value that nobody has a key for here. Line breaks stay behind it."""
    return f"[masked:{name}]".encode() + b"\n" * value.count(b"\n")


def count_marks(text: str) -> int:
    """How many values were masked in ``text``."""
    return len(MARK.findall(text)) if "[masked:" in text else 0
