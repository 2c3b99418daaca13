"""Python as models write it does in a statement what CPython does, or fails with what to write
instead.
"""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest
from plain_loop import PlainLoop, statements

from runtime.interpreter import pool, supplied
from runtime.interpreter.lowering import lower
from runtime.interpreter.phrases import instead_of, told
from tests.interpreter.corpus import Snippet, expected, snippets, workspace

EXPECTED = expected()
_NOT_OF_PROGRAMS = frozenset({"copyright", "credits", "exit", "help", "license", "quit"})
"""Builtins that are there for who types at a terminal."""


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet.name)
def test_a_snippet_does_what_it_does_in_cpython(snippet: Snippet, tmp_path: Path) -> None:
    """Its output is that of CPython, live and replayed; one that is declared is told in words for
    the model.
    """
    loop = PlainLoop(workspace(tmp_path), statements(snippet.source)).run().replayed()
    execution = loop.executions[0]
    if not snippet.declared:
        assert execution.exception is None
        assert execution.stdout == EXPECTED[snippet.name]
        return
    assert execution.exception is not None
    message = execution.exception.message
    assert message
    assert not any(word in message.lower() for word in ("monty", "yet", "parser", "internal"))


def test_the_corpus_is_large_and_most_of_it_runs() -> None:
    """At least 250 snippets, and of them at most one in twenty is only declared."""
    declared = [snippet for snippet in snippets() if snippet.declared]
    assert len(snippets()) >= 250
    assert len(declared) * 20 <= len(snippets())
    assert len({snippet.name for snippet in snippets()}) == len(snippets())


@pytest.mark.parametrize(
    "piece",
    sorted(
        [
            *supplied.MODULES,
            "_added",
            "_ascii",
            "_caught",
            "_dates",
            "_enum",
            "_has",
            "_lastgroup",
            "_named",
            "_namedtuple",
            "_numbers",
            "_open",
            "_opens",
            "_ordered",
            "_parsed",
            "_patterns",
            "_plainly",
            "_reads",
            "_regex",
            "_round",
            "_template",
            "_truth",
            "_truths",
            "_types",
            "_values",
            "_writes",
        ]
    ),
)
def test_every_supplied_piece_can_be_fed(piece: str) -> None:
    """Also each by itself, with what it needs, and where a statement has bound the names of
    builtins.
    """
    with pool.session() as session:
        for needed in supplied.closure([piece]):
            session.feed_run(supplied.source(needed))


def test_supplied_names_are_no_variables(tmp_path: Path) -> None:
    """What is fed for a statement is neither listed nor told, and a module looks like one."""
    loop = PlainLoop(
        tmp_path,
        statements("import heapq\nxs = sorted([2, 1])\ndel xs", "print(heapq.nlargest(1, [1, 2]))"),
    )
    loop.run().replayed()
    assert loop.turns[0].variables == ("heapq",)
    assert loop.executions[0].state_diff.added["heapq"].type == "module"
    assert loop.executions[1].stdout == "[2]\n"


def test_a_deleted_name_is_unknown_to_the_next_statement(tmp_path: Path) -> None:
    """As if it had never been bound."""
    loop = PlainLoop(tmp_path, statements("x = 1", "del x", "print(x)")).run().replayed()
    assert loop.executions[1].state_diff.deleted == ("x",)
    assert loop.executions[2].exception is not None
    assert "Name `x` used when not defined" in loop.executions[2].exception.message


def test_pieces_work_where_builtins_are_variables(tmp_path: Path) -> None:
    """``list = ...`` and ``type = ...`` are common."""
    loop = PlainLoop(
        tmp_path,
        statements(
            "import heapq, difflib",
            "list = len = type = sorted = range = str = 'mine'",
            "h = []\nheapq.heappush(h, 2)\nprint(h, heapq.nlargest(1, [3, 4]),"
            " difflib.get_close_matches('ab', ['abc']))",
        ),
    ).run()
    assert loop.executions[2].stdout == "[2] [4] ['abc']\n"


def test_a_traceback_shows_the_statement_that_was_written(tmp_path: Path) -> None:
    """Its own lines and their numbers, also where lines were added or edited, and no frame of a
    piece.
    """
    source = (
        "from enum import Enum\n"
        "class Color(Enum):\n"
        "    RED = 1\n"
        "def items():\n"
        "    yield 1\n"
        "\n"
        "xs = sorted(items(), key=lambda v: v / 0)\n"
    )
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert (
        execution.exception.trace_summary == "Traceback (most recent call last):\n"
        '  File "<statement>", line 7, in <module>\n'
        "    xs = sorted(items(), key=lambda v: v / 0)\n"
        '  File "<statement>", line 7, in <lambda>\n'
        "    xs = sorted(items(), key=lambda v: v / 0)\n"
        "ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(
    "source", ["x = (1", "def f(:", "x = 1\n" * 10, "type X = int", "print('a')", ""]
)
def test_what_needs_nothing_is_fed_as_it_is(source: str) -> None:
    """Also what the host's parser does not take."""
    lowered = lower(source)
    assert (lowered.source, lowered.pieces) == (source, ())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "The monty syntax parser does not yet support class inheritance and metaclasses",
            (
                "a class cannot inherit from another (nor from an exception): write the shared"
                " parts as functions, hold an instance of the other class, and raise ValueError or"
                " another built-in exception"
            ),
        ),
        (
            "The monty syntax parser does not yet support something new",
            "something new: not supported, write it another way",
        ),
        (
            "No module named 'numpy'",
            "No module named 'numpy': only the modules that the contract lists are there",
        ),
        (
            "'opener' argument is not yet supported",
            "the argument 'opener' is not supported: leave it out",
        ),
        (
            "field() does not yet support the init argument",
            (
                "field(init=...) is not supported: leave it out, give the field a default and set it in"
                " __post_init__"
            ),
        ),
        (
            "OS function 'Path.is_file' cannot suspend in this synchronous context",
            (
                "is_file reads files, which a function that is handed to reduce, groupby and the like"
                " cannot do: write a loop"
            ),
        ),
        ("division by zero", "division by zero"),
    ],
)
def test_messages_of_the_interpreter_are_told_to_the_model(said: str, shown: str) -> None:
    """What to write instead; unknown ones pass."""
    assert told(said) == shown


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import difflib\nlist(difflib.unified_diff(['a'] * 1000, ['b'] * 1000))",
            "too many to be compared",
        ),
        ("import textwrap\ntextwrap.wrap('word ' * 100_000)", "give it a part at a time"),
        ("import statistics\nstatistics.mean(range(50_000))", "give it a part at a time"),
        ("import statistics\nstatistics.mean([])", "mean requires at least one data point"),
    ],
)
def test_what_the_host_computes_is_bounded(tmp_path: Path, source: str, message: str) -> None:
    """An error that the model sees, at once."""
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert message in execution.exception.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("from string import digits, Formatter", "cannot import name 'Formatter' from 'string'"),
        ("from operator import concat as c, no as n", "cannot import name 'no' from 'operator'"),
        ("from contextlib import contextmanager", "write a class with __enter__ and __exit__"),
        ("from pathlib import Path\nprint(Path('a') < Path('b'))", "p.parts compare"),
        ("open('notes.txt', 'r+')", "read the file, then write it whole"),
        ("n = int.from_bytes(b'a', 'big')", "write int(data.hex(), 16)"),
        ("n = (5).to_bytes(2, 'big')", "write bytes.fromhex("),
        ("b = bytes([1, 2])", "bytes.fromhex(...) and text.encode() make bytes"),
        (
            "from datetime import datetime\ndatetime.utcnow()",
            "write datetime.now(..., timezone.utc)",
        ),
        ("import sys\nsys.stdout.write('a')", "write print(text, end='')"),
        ("import sys\nsys.stdin.read()", "there is no standard input"),
        ("import os\nos.environ['HOME']", "sees no environment variables"),
        ("import os\nos.getenv('HOME')", "sees no environment variables"),
        ("from typing import Optional\nOptional(int)", "names of typing are for annotations"),
        ("def f(): pass\nprint(f.__doc__)", "such attributes are not supported"),
        (
            "from dataclasses import dataclass\n@dataclass(kw_only=True)\nclass A:\n    x: int",
            "dataclass(kw_only=...) is not supported: leave it out",
        ),
        ("import logging", "write print(text)"),
        ("import configparser", "read the text with str.partition, re, csv or json"),
        ("import xml.etree.ElementTree as ET", "read the text with"),
        ("import argparse", "assign what it works with"),
        ("import zoneinfo", "timezone(timedelta(hours=1))"),
        ("import fractions", "use decimal"),
        ("from types import SimpleNamespace", "use a dict"),
        ("import pickle", "variables stay from turn to turn"),
        ("import urllib.request", "call the job's tools"),
        ("import struct", "only the modules that the contract lists"),
        ("import tqdm", "only the modules that the contract lists"),
        ("from functools import cached_property", "only the usual parts of a module"),
        ("import re\nre.scanner", "only the usual parts of a module"),
    ],
)
def test_what_is_not_there_is_told_with_what_to_write(
    tmp_path: Path, source: str, message: str
) -> None:
    """A module that the contract lists is not said to be missing for one name."""
    execution = PlainLoop(workspace(tmp_path), statements(source)).run().executions[0]
    assert execution.exception is not None
    assert message in execution.exception.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "class A:\n    pass\nclass B(A):\n    def __init__(self):\n        super().__init__()",
            "a class cannot inherit from another",
        ),
        ("x = input('name? ')", "nobody answers a statement"),
        ("b = bytearray(b'a')", "collect in a list, or join bytes"),
        ("try:\n    x = 1\nexcept UnicodeError:\n    x = 2", "write (UnicodeDecodeError, "),
        ("try:\n    x = 1\nexcept ConnectionError:\n    x = 2", "nothing here raises it"),
        ("print(nosuch)", "Name `nosuch` used when not defined"),
    ],
)
def test_a_builtin_that_is_not_there_is_told_with_what_to_write(
    tmp_path: Path, source: str, message: str
) -> None:
    """Of a name that is no builtin there is nothing more to say."""
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert execution.exception.type == "TypeCheckError"
    assert message in execution.exception.message


@pytest.mark.slow
def test_every_builtin_is_there_or_told(tmp_path: Path) -> None:
    """Also those of later Pythons; decorators are known where they decorate."""
    names = [name for name in dir(builtins) if name.isalnum() and name not in _NOT_OF_PROGRAMS]
    loop = PlainLoop(tmp_path, statements(*[f"x = {name}" for name in names])).run()
    failed = [
        name
        for name, execution in zip(names, loop.executions, strict=False)
        if execution.exception is not None
    ]
    assert [name for name in failed if not instead_of(name)] == ["classmethod", "staticmethod"]
    assert len(failed) < len(names) / 2
