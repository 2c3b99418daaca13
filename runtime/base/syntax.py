"""Python's own parser, for several threads.

Up to Python 3.12 the interpreter has one count of how deep it is in the tree that it makes. Where a
collection of garbage lets another thread parse in the middle, the count is that thread's, and the
first one's tree is refused: "AST constructor recursion depth mismatch" (python/cpython#106905). A
worker has as many threads as workflow tasks, and each reads statements and values.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TRIES = 10
"""A library may parse in another thread too, and knows nothing of the lock."""

_PARSING = threading.RLock()


def tree_of(source: str) -> ast.Module:
    """As ``ast.parse``; the same errors are raised."""
    return _alone(lambda: ast.parse(source))


def literal(text: str) -> object:
    """As ``ast.literal_eval`` of a text; the same errors are raised."""
    # As ``literal_eval`` takes a text itself.
    return ast.literal_eval(_alone(lambda: ast.parse(text.lstrip(" \t"), mode="eval")))


def _alone(parsed: Callable[[], T]) -> T:
    with _PARSING:
        for _ in range(TRIES - 1):
            try:
                return parsed()
            except SystemError:
                continue
        # The last try tells its own error.
        return parsed()
