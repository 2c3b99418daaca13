"""However a statement is laid out, it means what it means to Python."""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from by_python import assert_prints_the_same

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower
from tests.interpreter.corpus import Snippet, snippets

SIGNS = (tokenize.OP, tokenize.NAME, tokenize.NUMBER)
BEGINS = (getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "TSTRING_START", None))
ENDS = (getattr(tokenize, "FSTRING_END", None), getattr(tokenize, "TSTRING_END", None))
COMMENTED = """
names = ["b", "A"]
print(sorted(
    names,  # all of them (both)
    key=str  # :)
    .lower,
))
known = {1, 2}
(known  # a set :)
 .update([3], [4]))
print(known, max({"a": 1, "b": 2}, key=(  # the name (not
    ({"a": 1, "b": 2}  # the value))
)).get))
"""
ON_A_LINE = """
from enum import Enum
class Color(Enum): RED = 1; BLUE = 2
def made():
    class s(str, Enum): A = "a"
    return s.A
print(Color.RED, repr(Color.BLUE), {Color.RED: 1}[Color(1)], made(), list(Color))
"""
GENERATORS = """
import functools
from enum import Enum
class Pairs:
    def __init__(self, *items): self.items = items
    def __iter__(self): yield from self.items; yield "end"  # of them
def within():
    def one(): yield 1
    for x in one(): yield x
    yield from (x for x in one())
def spread(a,
           b): yield a; yield b
def decorated():
    @ functools.lru_cache(maxsize=None)
    # of its own
    def inner(x): return x
    yield inner(1)
def classes():
    class Kind(Enum):
        A = 1
    yield Kind.A
print(list(Pairs(1, 2)), list(within()), list(spread(1, 2)), list(decorated()), list(classes()))
"""
KEYS = """
d = {(1, "a"): 2, (3,): 4, ((5), 6): 7, 8: 9}
del d[1, "a"], d[3,], d[8]
del d[(5), 6  # of ] two )
      ]
print(d)
"""
BASES = """
from enum import Enum
class Color(
    Enum,  # kinds: two (see #5): a
):  # these: yes
    RED = 1
print(Color.RED)
"""


def spread(source: str) -> str:
    """A source with blanks, line breaks and comments wherever there may be some in brackets.

    But for those of an f-string, whose fields are tokens from Python 3.12 on.
    """
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    parts, at, depth, strings = [], 0, 0, 0
    between = cycle(("  # (c) ) \"x'\n", "\n  ", " "))
    for token, after in pairwise(tokenize.generate_tokens(io.StringIO(source + "\n").readline)):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        strings += (token.type in BEGINS) - (token.type in ENDS)
        may = not strings and token.type in SIGNS and after.type in (*SIGNS, tokenize.STRING)
        # A call's parenthesis stands behind its function, and a part of ``re`` behind that.
        if depth and may and token.string not in ("re", ".") and after.string != "(":
            end = starts[token.end[0] - 1] + token.end[1]
            parts += [source[at:end], next(between)]
            at = end
    return "".join([*parts, source[at:]])


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet.name)
def test_a_statement_is_lowered_alike_in_any_layout(snippet: Snippet) -> None:
    """Spread over many lines with comments between, and as Python itself would write it."""
    tree = ast.parse(snippet.source)
    lowered = ast.dump(ast.parse(lower(snippet.source).source))
    for other in (spread(snippet.source), ast.unparse(tree)):
        assert ast.dump(ast.parse(other)) == ast.dump(tree)
        assert ast.dump(ast.parse(lower(other).source)) == lowered


@pytest.mark.parametrize("source", [COMMENTED, ON_A_LINE, GENERATORS, KEYS, BASES])
def test_a_layout_changes_nothing(source: str, workspace: Path) -> None:
    """Comments with parentheses between a call's parts, operands in parentheses of their own, a
    class on one line whose name is a part of that word; generators on one line, or that begin with
    what is decorated, keys without parentheses, and a comment with a colon among bases.
    """
    assert_prints_the_same(source, workspace)


def test_line_ends_in_a_text_are_pythons() -> None:
    """A statement that was written on Windows."""
    for end in ("\r\n", "\r"):
        assert lower(f'x = """a{end}b"""').source == 'x = """a\nb"""'
        text = f'x = """a{end}b"""'
        assert lower(text, dialect=Dialect.ALIKE).source == text


@pytest.mark.parametrize("source", ["f(str  # )\n.lower)", ON_A_LINE, "class s(Enum):\n    A = 1"])
def test_a_run_of_before_reads_what_it_read_then(source: str) -> None:
    """Its history has what came of it."""
    assert lower(source, dialect=Dialect.ALIKE).source != lower(source).source


@pytest.mark.parametrize("source", [GENERATORS, KEYS, BASES])
def test_a_run_of_before_goes_by_the_layouts_of_then(source: str) -> None:
    """What came of them was a ``SyntaxError``, or something else than Python's."""
    assert lower(source, dialect=Dialect.LAID_OUT).source != lower(source).source
