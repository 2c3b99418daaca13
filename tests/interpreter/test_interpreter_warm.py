"""A warm type checker says what a cold one says, whatever it has checked before."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from runtime.context.contract import type_stubs
from runtime.interpreter import checker
from runtime.interpreter.handles import HANDLE_TYPES
from runtime.interpreter.objections import NO_OBJECTION, Opinion
from runtime.interpreter.typecheck import check
from tests.interpreter.corpus import snippets

STUBS = type_stubs(())
NAMES = {"foo": "ViewHandle", "rows": "list", "n": "int", "text": "str", "other": "Thing"}
WRONG = (
    "view(1)",
    "foo.SetLod('high')",
    "foo.Nope()",
    "nobody",
    "n.upper()",
    "text + n",
    "def f(:",
    "class A(dict): pass",
    "from __future__ import annotations\nfoo.SetTokens('many')",
    "str = 5\nview(str)",
    "def view(x: int) -> int: return x\nview(1)",
    "import re as json\njson.dumps({})",
    "while True: pass",
)
"""What is objected to, and what would change what comes after it, were it remembered."""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Checkers of this test alone."""
    checker.close()
    yield
    checker.close()


def opinion(source: str) -> Opinion:
    """The checker's, of one of the sources."""
    return check(source, STUBS, NAMES, HANDLE_TYPES)


@pytest.mark.slow
def test_a_warm_check_says_what_a_cold_one_says() -> None:
    """The same words, in whatever order the sources come, by one process."""
    sources = [*WRONG, *(snippet.source for snippet in snippets()[::6])]
    cold = []
    for source in sources:
        checker.close()
        cold.append(opinion(source))
    assert sum(one != NO_OBJECTION for one in cold) >= 9
    checker.close()
    order = list(range(len(sources)))
    for seed in (1, 2):
        random.Random(seed).shuffle(order)
        for place in order:
            assert opinion(sources[place]) == cold[place], sources[place]
    assert len(checker._idle) == 1
    assert checker._idle[0].checks == 2 * len(sources)
