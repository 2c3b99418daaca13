"""The type check: a wrong statement is told before any of it runs, with its own line numbers."""

from __future__ import annotations

import builtins

import pytest
from plain_loop import Run
from pydantic_monty import MontyError

from runtime.context.contract import type_stubs
from runtime.interpreter import pool, supplied
from runtime.interpreter.handles import HANDLE_TYPES
from runtime.interpreter.lowering import lower
from runtime.interpreter.objections import NO_OBJECTION
from runtime.interpreter.typecheck import check

STUBS = type_stubs(())
LACKED = {"copyright", "credits", "exit", "help", "license", "quit"}
LACKED |= {"classmethod", "staticmethod"}
"""Builtins that the checker knows and a statement lacks: a NameError when they are used as
values.
"""


def test_the_message_has_the_statements_own_lines_and_nothing_ran(run: Run) -> None:
    """Line 3 is line 3, however many variables there are."""
    loop = run("x = 1\ny = 'a'", "print('never')\n\nview(x)", "print(x)")
    execution = loop.executions[1]
    assert execution.exception is not None
    assert execution.exception.type == "TypeCheckError"
    assert (
        execution.exception.message
        == "line 3, column 6: error[invalid-argument-type] Argument to function `view` is"
        " incorrect: "
        "Expected `str | PathLike[str] | IO[Any]`, found `int`"
    )
    assert (execution.stdout, loop.executions[2].stdout) == ("", "1\n")


def test_names_that_a_failed_statement_bound_are_known(run: Run) -> None:
    """The checker goes by what is there, not by what succeeded."""
    loop = run("x = [1]\ndef f(): return 2\n1 / 0", "x.append(f())\nprint(x)")
    assert loop.executions[1].stdout == "[1, 2]\n"


def test_a_wrong_call_of_the_contract_is_told(run: Run) -> None:
    """Handles, contract functions and tools are all checked."""
    loop = run("foo = view('a.txt')", "foo.SetLod('high')", "foo.Nope()", "search(5)", "view()")
    told = [
        execution.exception.message for execution in loop.executions[1:5] if execution.exception
    ]
    assert len(told) == 4
    assert "Argument to function `SetLod` is incorrect" in told[0] or "SetLod" in told[0]
    assert "no attribute `Nope`" in told[1]
    assert "search" in told[2]
    assert "path" in told[3]


def test_what_a_command_gave_can_be_viewed_in_its_own_statement() -> None:
    """There the checker knows its type; it is a source in jobs that have commands alone."""
    source = "r = sh('true')\nv = view(r)\nw = view(r.stdout, pos='-1')"
    of_hands = check(source, type_stubs((), hands=True), {}, HANDLE_TYPES)
    assert of_hands == NO_OBJECTION
    wrong = check("view(5)", type_stubs((), hands=True), {}, HANDLE_TYPES)
    assert wrong.refusal is not None
    assert "CommandResult" not in type_stubs(())


@pytest.mark.parametrize("source", ["def f(:", "x = (1", "if x:\nprint(1)"])
def test_broken_syntax_is_a_syntax_error(run: Run, source: str) -> None:
    """By its usual name."""
    exception = run(source).executions[0].exception
    assert exception is not None
    assert exception.type == "SyntaxError"
    assert exception.message.startswith("line 1, ") or exception.message.startswith("line 2, ")


def test_what_monty_does_not_have_is_told(run: Run) -> None:
    """Parsed, not run."""
    loop = run("class A(dict): pass", "import numpy")
    told = [execution.exception for execution in loop.executions[:2]]
    assert told[0] is not None
    assert told[0].type == "NotImplementedError"
    assert told[1] is not None
    assert (
        told[1].message
        == "No module named 'numpy': only the modules that the contract lists are there"
    )


@pytest.mark.parametrize(
    ("source", "stdout"),
    [
        ("d = {'a': 1, 'b': 2}\nprint(sum({'a': 1, 'b': 2.5, 'c': 3}.values()))", "6.5\n"),
        (
            (
                "counts = {'x': 1, 'y': 'z'}\nprint(sum(v for v in counts.values() if isinstance(v,"
                " int)))"
            ),
            "1\n",
        ),
        ("try:\n    import yaml\nexcept ImportError:\n    yaml = None\nprint(yaml)", "None\n"),
        ("import re\nm = re.search('a(b)', 'ab')\nprint(m.group(1))", "b\n"),
        ("import json\ndata = json.loads('{\"a\": [1]}')\nprint(data['a'][0] + 1)", "2\n"),
        ("try:\n    unknown\nexcept NameError:\n    print('none')", "none\n"),
        (
            "def f(flag):\n    return 'a' if flag else None\nprint(search(f(True)))",
            "['a 0', 'a 1']\n",
        ),
    ],
)
def test_what_the_checker_cannot_be_sure_of_runs(run: Run, source: str, stdout: str) -> None:
    """Sound Python that a type checker objects to is no error, and its objection is told to
    nobody.
    """
    execution = run(source).executions[0]
    assert execution.exception is None
    assert execution.stdout == stdout


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("print('never'); view('a', nope=1)", "unknown-argument"),
        ("print('never'); view()", "missing-argument"),
        ("print('never'); finish(1, 2)", "too-many-positional-arguments"),
        ("print('never'); search(5)", "invalid-argument-type"),
        ("print('never'); foo.SetLod('high')", "invalid-argument-type"),
        ("print('never'); foo.Nope()", "unresolved-attribute"),
        ("print('never'); foo.tokens = 3", "invalid-assignment"),
        ("print('never'); nothing", "unresolved-reference"),
    ],
)
def test_what_is_sure_to_fail_is_refused_before_it_runs(run: Run, source: str, rule: str) -> None:
    """Wrong calls of what the contract declares, and names that nothing defines."""
    execution = run("foo = view('a.txt')", source).executions[1]
    assert execution.exception is not None
    assert (execution.exception.type, execution.stdout) == ("TypeCheckError", "")
    assert f"error[{rule}]" in execution.exception.message


def test_a_warning_is_told_with_the_exception_that_it_foretold(run: Run) -> None:
    """Also by a replay, which does not ask the checker again."""
    execution = run("print('so far')\n'a' + 1").executions[0]
    assert execution.exception is not None
    assert execution.exception.type == "TypeError"
    assert execution.stdout == "so far\n"
    assert execution.exception.trace_summary.endswith(
        "\n\nThe type checker had noted:\nline 2, column 1: error[unsupported-operator] "
        'Operator `+` is not supported between objects of type `Literal["a"]` and `Literal[1]`'
    )


def test_variables_may_have_the_names_of_types(run: Run) -> None:
    """Objections to the framework's own declarations are no objections to the statement."""
    names = {
        "list": "list",
        "Any": "int",
        "IO": "str",
        "ViewHandle": "int",
        "int": "str",
        "open": "int",
    }
    assert check("print(1)", STUBS, names, HANDLE_TYPES).refusal is None


@pytest.mark.parametrize("name", [name for name in dir(builtins) if not name.startswith("_")])
def test_the_checker_knows_the_builtins_that_the_interpreter_has(name: str) -> None:
    """A builtin that runs is never refused; those that only the checker knows are listed here."""
    lowered = lower(name)
    with pool.session() as session:
        try:
            for piece in lowered.pieces:
                session.feed_run(supplied.source(piece))
            session.feed_run(f"{lowered.source}\nNone")
            runs = True
        except MontyError:
            runs = False
    accepted = check(name, STUBS, {}, HANDLE_TYPES).refusal is None
    assert accepted or not runs
    assert (accepted and not runs) == (name in LACKED)
