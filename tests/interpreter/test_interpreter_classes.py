"""What a class of a statement says of its objects counts, and what nobody would ask is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_python import assert_prints_the_same
from plain_loop import PlainLoop, statements

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower
from runtime.interpreter.phrases import told

TRUTHS = """
class Stack:
    def __init__(self, *items):
        self.items = list(items)
    def __len__(self):
        return len(self.items)
class Above:
    def __init__(self, value):
        self.value = value
    def __bool__(self):
        return self.value > 2
full, empty, low, high = Stack(1, 2), Stack(), Above(1), Above(3)
while full:
    print(full.items.pop())
print("t" if full else "f", not empty, bool(low), bool(high), bool(), bool([0]))
print([x.value for x in (low, high) if x], [1 for x in (low, high) if not x and high])
if (one := low):
    print("low")
elif empty or (full or high):
    print(f"high {'t' if low else 'f'}")
try:
    assert empty, "nothing there"
except AssertionError as error:
    print(error)
match 1:
    case 1 if low:
        print("low")
    case _:
        print("other")
print([1 if x else 0 for x in ("", "a", None, [], {}, 0.0, len, Stack, Stack(0), ValueError())])
"""

TIMES = """
import datetime
import datetime as dt
from datetime import datetime as D
print(datetime.timedelta(hours=1.5), dt.timedelta(0.5), dt.timedelta(), dt.timedelta(days=1))
print(D.strptime("10:00:30", "%H:%M:%S"), dt.datetime.strptime("Mar 5 10:00", "%b %d %H:%M"))
print(D.strptime("2024-03", "%Y-%m"), D.strptime("2024-03-04", "%Y-%m-%d"))
for text, form in (("x", "%H:%M"), ("2024-13-01", "%Y-%m-%d")):
    try:
        D.strptime(text, form)
    except ValueError as error:
        print(error)
"""


VALUES = """
class Stack:
    def __init__(self, *items):
        self.items = items
    def __len__(self):
        return len(self.items)
    def __repr__(self):
        return f"Stack{self.items}"
    least = 1
    most = least or 2
    def of(self, other):
        return self or other
e, f = Stack(), Stack(1)
print(e or "other", e and "x", f or "other", f and "x", (e) or (f), e or f or 1 / 0, f"{e or 'z'}")
print(e.of(5), f.of(5), e or not e, (e or f) and 3, f and e or 7, None or e or 0, (e or
    f), [x or 1 for x in (e, f, 0, 2)], 1 < 2 and e, e or {"a": e or 5}, e or "a" "b")
def first(a=None):
    a = a or e or "d"
    n = 5
    return a, e or n
print(first(), first(f), first(e), (q := e) or 4, (lambda v: v or "none")(e))
if e or f:
    print(sorted([f, e], key=lambda s: s and 1 or 0))
"""

DENIES = """
class P:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def __ne__(self, other):
        return not self == other
print(P(1) != P(1), P(1) != P(2), P(1) == P(1))
"""


@pytest.mark.parametrize("source", [TRUTHS, TIMES, VALUES, DENIES])
def test_a_statement_prints_what_python_prints(source: str, tmp_path: Path) -> None:
    """Live and replayed."""
    assert_prints_the_same(source, tmp_path)


def test_objects_have_their_truth_in_later_statements(tmp_path: Path) -> None:
    """Also where the statement with the class had no call of ``len``."""
    loop = PlainLoop(
        tmp_path,
        statements(
            "class N:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n",
            "print(len(N(4)), 'true' if N(0) else 'false')",
        ),
    )
    assert loop.run().replayed().executions[1].stdout == "4 false\n"


@pytest.mark.parametrize("head", ["", "from enum import Enum\n"])
@pytest.mark.parametrize("method", ["__setattr__", "__new__", "__format__", "__iadd__", "__ne__"])
def test_a_method_that_nobody_would_call_is_refused(method: str, head: str, tmp_path: Path) -> None:
    """As its class is made, at its line, and not by another result."""
    base = "(Enum)" if head else ""
    source = f"{head}class A{base}:\n    X = 1\n    def {method}(self, *a): return self"
    execution = PlainLoop(tmp_path, statements(source)).run().replayed().executions[0]
    assert execution.exception is not None
    assert execution.exception.type == "NotImplementedError"
    assert execution.exception.message == (
        f"A.{method} would not be called: write a method of another name, and call it"
    )
    assert f"line {2 if head else 1}," in execution.exception.trace_summary


def test_what_compares_and_what_does_not_is_told() -> None:
    """And of groups, which calls take a name."""
    compared = "'<' not supported between instances of '{0}' and '{0}'"
    assert "only sorted(), min() and max() call" in told(compared.format("Node"))
    for other in ("dict", "NoneType"):
        assert told(compared.format(other)) == compared.format(other)
    assert "start(), end() and span() its number alone" in told("no such group")


def test_a_run_of_before_has_it_as_it_was() -> None:
    """Its history has what came of it."""
    made = {lower(source).pieces for source in (TRUTHS, TIMES)}
    assert {"_truth", "_parsed"} <= {piece for pieces in made for piece in pieces}
    before = {lower(source, dialect=Dialect.NATURAL).pieces for source in (TRUTHS, TIMES)}
    assert not {"_truth", "_parsed", "_dates"} & {piece for pieces in before for piece in pieces}
    refused = "class A:\n    def __new__(cls): pass"
    assert lower(refused, dialect=Dialect.NATURAL).source == refused
    assert told("no such group", dialect=Dialect.NATURAL) == "no such group"
    assert "_values" in lower(VALUES).pieces
    assert "_values" not in lower(VALUES, dialect=Dialect.FAITHFUL).pieces
    unequal = "class A:\n    def __ne__(self, other): return 1"
    assert lower(unequal, dialect=Dialect.FAITHFUL).source == unequal
