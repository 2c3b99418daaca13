"""Attributes of caught exceptions, and parts of the library that models use without a thought."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_python import assert_prints_the_same
from plain_loop import PlainLoop, statements

from runtime.interpreter import stand_ins
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

CAUGHT = """
import json, sys
try:
    json.loads('{"a": x}')
except json.JSONDecodeError as e:
    print(e.lineno, e.colno, e.pos, f"{e.msg} at {e.lineno}:{e.colno}")
try:
    open("nope.txt")
except OSError as e:
    print(e.errno, e.strerror, e.filename, e)
for how in (3, "why", None):
    try:
        sys.exit(how)
    except SystemExit as e:
        print(repr(e.code))
class Sure:
    def __enter__(self):
        return self.__class__.__name__
    def __exit__(self, kind, error, trace):
        print(kind.__name__, error.__class__.__name__, f"{error.__class__}")
        return True
with Sure() as name:
    {}["k"]
print(name, ValueError.__name__, "a".__class__, len.__name__, Sure.__exit__.__name__)
class Mine:
    def __init__(self):
        self.msg, self.pos = "m", 1
try:
    1 / 0
except ZeroDivisionError as e:
    e = Mine()
    print(e.msg, e.pos)
"""

NATURAL = """
from collections import OrderedDict
from pathlib import Path, PurePath, PurePosixPath as P
d = OrderedDict(a=1, b=2, c=3)
d.move_to_end("a")
print(list(d.items()))
d.move_to_end("c", last=False)
print(list(d), d.popitem(last=False), d.popitem(), d.popitem(last=True), len(d))
print(PurePath("a/b").name, P("x").suffix, isinstance(Path("a"), PurePath))
it = iter([3, 0, 4])
print(list(iter(lambda: next(it), 0)), next(iter([1])))
"""

COMPARED = """
last = type(ValueError("a"))
def kind_of(type):
    try:
        1 / 0
    except ZeroDivisionError as e:
        return type(e) is ZeroDivisionError
for bad in (lambda: int("x"), lambda: 1 / 0, lambda: [][1], lambda: open("nope.txt")):
    try:
        bad()
    except Exception as e:
        print(type(e) is ValueError, ZeroDivisionError == type(e), type(e) != IndexError)
        print(type(e) in (KeyError, FileNotFoundError), type(e) not in [ValueError], type(e) is last)
        print(f"{type(e) is ValueError}", type(e) == type(e) == ValueError, type(e).__name__)
print(kind_of(lambda e: 5))
"""


@pytest.mark.parametrize("source", [CAUGHT, NATURAL, COMPARED])
def test_a_statement_prints_what_python_prints(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live and replayed."""
    monkeypatch.chdir(tmp_path)
    assert_prints_the_same(source, tmp_path)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(n): return f(n + 1)\nf(0)", "at most 200 calls within each other"),
        ("import traceback\ntraceback.print_exc()", "print f'{type(e).__name__}: {e}'"),
        ("from pathlib import Path\nPath('a.py').match('*.py')", "fnmatch.fnmatch(path.name, "),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e.__cause__)",
            "keep the first exception in a variable",
        ),
    ],
)
def test_what_is_not_there_is_told_with_what_to_write(
    tmp_path: Path, source: str, told: str
) -> None:
    """The message names it."""
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert told in execution.exception.message


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept OSError as e:\n    print(e.errno)",
        "d.move_to_end(1)",
        "d.popitem(last=False)",
        "iter(f, '')",
        "from pathlib import PurePath",
    ],
)
def test_a_run_of_before_is_lowered_as_it_was_then(source: str) -> None:
    """Its history has what came of it."""
    assert lower(source, dialect=Dialect.WRITES).source == source
    assert lower(source).source != source


def test_a_caught_exceptions_type_is_the_class_of_that_name(tmp_path: Path) -> None:
    """Of each that is lowered; in a run of before it was never."""
    source = "".join(
        f"try: raise {name}('x')\nexcept BaseException as e: print(type(e) is {name})\n"
        for name in sorted(stand_ins.EXCEPTIONS)
    )
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is None
    assert execution.stdout == "True\n" * len(stand_ins.EXCEPTIONS)
    assert "_types" not in lower(source, dialect=Dialect.NATURAL).pieces
