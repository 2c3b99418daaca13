"""Python's own parser, for several threads.

Up to Python 3.12 the interpreter has one count of how deep it is in the tree that it makes. Where a
collection of garbage lets another thread parse in the middle, the count is that thread's, and the
first one's tree is refused: "AST constructor recursion depth mismatch" (python/cpython#106905). A
worker has as many threads as workflow tasks, and each reads statements and values.

What the parser warns of, an escape as in ``"\\d"``, is no concern of those who run a job: from
Python 3.12 on it was printed each time a statement was read.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TRIES = 10
"""A library may parse in another thread too, and knows nothing of the lock."""

_PARSING = threading.RLock()

# For the process, and for sources without a file alone: ``catch_warnings`` is not for threads.
# Where warnings are made errors (``-W error``) such a statement would be refused.
warnings.filterwarnings("ignore", module=r"<unknown>\Z")


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
