"""What stands in place of a masked value: ``[masked:OPENAI_API_KEY:9f86d081884c7d65]``. Pure.

The last part is the start (64 bits) of HMAC-SHA256 of the value under a key that only the installation has: who holds the
key and a value can tell that it is the one that stood there, and equal values have equal marks. Without the key the mark
says nothing about the value.
"""

from __future__ import annotations

import hashlib
import hmac
import re

RAW_MARK = re.compile(rb"\[masked:[A-Za-z0-9_.-]+:[0-9a-f]{16}\]")
MARK = re.compile(r"\[masked:([A-Za-z0-9_.-]+):([0-9a-f]{16})\]")


def mark_of(name: str, value: bytes, key: bytes) -> str:
    """The mark of ``value``. Line breaks of the value stay behind it, so the lines after it keep their numbers."""
    code = hmac.new(key, value, hashlib.sha256).hexdigest()[:16]
    return f"[masked:{name}:{code}]" + "\n" * value.count(b"\n")


def count_marks(text: str) -> int:
    """How many values were masked in ``text``."""
    return len(MARK.findall(text)) if "[masked:" in text else 0
