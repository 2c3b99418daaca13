"""What a statement asks a value about itself is answered as by Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_python import assert_prints_the_same
from plain_loop import PlainLoop, statements

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

FLAT = """
def flat(x):
    if hasattr(x, "__iter__") and not isinstance(x, str):
        for y in x:
            yield from flat(y)
    else:
        yield x
print(list(flat([1, (2, {3}), {"a": 1}, "xy", range(2), iter([9])])))
print([name for name in ("keys", "append", "strip", "nope") if hasattr({}, name)])
"""
KINDS = """
import re, json
from collections import Counter, deque, defaultdict, namedtuple
from datetime import date, datetime, timedelta
from pathlib import Path
class Own:
    kind = "own"
    def __init__(self): self.own = 2
    def told(self): return self.own
Pair = namedtuple("Pair", "a b")
asked = "__iter__ __len__ __getitem__ __call__ append items strip groupdict isoformat suffix a own told total"
for value in (
    *(1, 1.5, True, None, "a", b"a", [], (), {}, set(), frozenset(), deque(), defaultdict(int)),
    *(Counter(), Pair(1, 2), re.compile("a"), re.match("a", "a"), Path("a"), date(2024, 1, 1)),
    *(datetime(2024, 1, 1), timedelta(1), range(3), iter([]), lambda: 1, len, Own, Own(), ValueError()),
    *({}.keys(), {}.items(), {}.values(), json),
):
    print([name for name in asked.split() if hasattr(value, name)])
print(getattr(Own(), "told")(), getattr(Own(), "x", 5), getattr("a", "nope", None), hasattr(json, "dumps"))
try:
    hasattr(1)
except TypeError:
    print("two arguments")
"""
OF_ITS_OWN = """
class Match:
    def __init__(self): self.home = 2
print(hasattr(Match(), "home"), hasattr(Match(), "group"), getattr(Match(), "groups", "none"))
class my_iterator: pass
print(hasattr(my_iterator(), "__next__"))
def hasattr(o, name): return "mine"
print(hasattr("a", "upper"))
"""
MANY = """
class Size:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
print(any([Size(0)]), any(Size(n) for n in range(2)), all([Size(1), Size(0)]), all([Size(1)]))
print([size.n for size in filter(None, [Size(0), Size(1)])], list(filter(lambda s: s, [Size(0)])))
print(any({}), all("a"), list(filter(str.isupper, "aB")))
"""


@pytest.mark.parametrize("source", [FLAT, KINDS, OF_ITS_OWN, MANY])
def test_a_value_answers_as_in_python(source: str, tmp_path: Path) -> None:
    """Which methods it has, also where it is of a built-in type; and which of many are true."""
    assert_prints_the_same(source, tmp_path)


def test_a_method_that_getattr_cannot_give_is_refused(tmp_path: Path) -> None:
    """And not taken for one that is not there."""
    execution = PlainLoop(tmp_path, statements('getattr("a", "upper", None)')).run().executions[0]
    assert execution.exception is not None
    assert execution.exception.message == (
        "getattr() gives no method of a built-in type: write o.upper"
    )


@pytest.mark.parametrize("source", [FLAT, MANY])
def test_a_run_of_before_is_answered_as_it_was(source: str) -> None:
    """Its history has what came of it."""
    assert {"_has", "_truths"}.isdisjoint(lower(source, dialect=Dialect.ON_ONE_LINE).pieces)
