"""What a statement computes otherwise than CPython, without a word: docs/design.md section 4 tells
of each. A release of the interpreter that mends one fails its test, and the document is changed.
"""

from __future__ import annotations

import pytest
from by_python import printed
from plain_loop import Run

GENERATOR = """
def numbers():
    print("begun")
    yield 1
    print("ended")
for number in numbers():
    print(number)
"""
EXPRESSION = """
numbers = (print("made", n) or n for n in range(2))
print("then", next(numbers))
"""
KEY = """
try:
    {1: 2}[5]
except KeyError as error:
    print(error, error.args)
"""
ASSERTED = """
try:
    assert len("ab") == 3, "too short"
except AssertionError as error:
    print(error)
"""
DELETED = """
name = 1
for _ in range(1):
    del name
try:
    print(type(name).__name__)
except NameError:
    print("unknown")
"""
WRAPPED = """
from functools import wraps
def same(function):
    @wraps(function)
    def inner():
        return function()
    return inner
@same
def greet(): pass
print(greet.__name__)
"""


@pytest.mark.parametrize(
    ("source", "python", "ours"),
    [
        (GENERATOR, "begun\n1\nended\n", "begun\nended\n1\n"),
        (EXPRESSION, "made 0\nthen 0\n", "made 0\nmade 1\nthen 0\n"),
        (KEY, "5 (5,)\n", "'5' ('5',)\n"),
        (ASSERTED, "too short\n", "too short\nassert 2 == 3\n"),
        ("import re\nprint(re.findall('a|', 'a'))", "['a', '']\n", "['a']\n"),
        ("print({1: 2, True: 4})", "{1: 4}\n", "{True: 4}\n"),
        ("print({5, 3, 8})", "{8, 3, 5}\n", "{5, 3, 8}\n"),
        (DELETED, "unknown\n", "holdfast_unbound\n"),
        (WRAPPED, "greet\n", "inner\n"),
    ],
)
def test_what_differs_is_known(source: str, python: str, ours: str, run: Run) -> None:
    """And no more than that: it is what the document says."""
    assert printed(source) == python
    execution = run(source).executions[0]
    assert execution.exception is None
    assert execution.stdout == ours
