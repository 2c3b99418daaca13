"""One look at all texts of a value: most hold nothing to mask, and looking at each by itself costs
more than what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any


def texts_of(value: Any, encoded: Callable[[str], bytes]) -> bytes:
    """The texts and bytes of ``value``, at any depth of lists, tuples and mappings, a line each.

    No text is masked that these lines hold nothing for. They may hold what no text does: where one
    ends and the next begins.
    """
    texts: list[bytes] = []
    _gather(value, encoded, texts)
    return b"\n".join(texts)


def _gather(value: Any, encoded: Callable[[str], bytes], texts: list[bytes]) -> None:
    if isinstance(value, str):
        texts.append(encoded(value))
    elif isinstance(value, bytes):
        texts.append(value)
    elif isinstance(value, PurePosixPath):
        texts.append(encoded(str(value)))
    elif isinstance(value, dict):
        for key, item in value.items():
            _gather(key, encoded, texts)
            _gather(item, encoded, texts)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(item, encoded, texts)
