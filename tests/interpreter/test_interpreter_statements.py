"""Statements: what they print, what they leave behind, and how the next one sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_loop import Run

from runtime.base.fences import fenced
from runtime.interpreter.executions import ChangeInfo, ExceptionInfo, ExecutionStatus, TypeInfo


def test_variables_functions_and_imports_stay_for_the_next_statement(run: Run) -> None:
    """A session is one namespace over all statements."""
    loop = run("import math\nx = 2\ndef twice(n): return 2 * n", "print(twice(x), math.floor(2.5))")
    assert loop.executions[1].stdout == "4 2\n"


def test_the_last_expression_is_shown_like_in_an_interactive_session(run: Run) -> None:
    """Values by their repr, texts as they are, nothing for None and for handles."""
    loop = run(
        "print('a')\n[1, 'b', (2,), {'k': {3}}]", "'text'", "None", "view('a.txt')", "frozenset()"
    )
    assert [e.stdout for e in loop.executions[:5]] == [
        "a\n[1, 'b', (2,), {'k': {3}}]\n",
        "text\n",
        "",
        "",
        "frozenset()\n",
    ]


def test_print_show_and_echo_come_in_the_order_of_the_calls(run: Run) -> None:
    """What ``show`` displays stands between the prints around it."""
    loop = run("foo = view('a.txt')\nprint('before')\nshow(foo)\nprint('after')\n'last'")
    assert (
        loop.executions[0].stdout == "before\n[view-1: view of a.txt lines 0:2 of 2, lod 0, 3"
        f" tokens]\n{fenced('hello' + chr(10) + 'world')}\nafter\nlast\n"
    )


def test_stdout_and_stderr_are_kept_apart(run: Run) -> None:
    """Each stream has its own text."""
    execution = run("import sys\nprint('err', file=sys.stderr)\nprint('out')").executions[0]
    assert (execution.stdout, execution.stderr) == ("out\n", "err\n")


def test_long_output_is_cut_in_the_middle_with_a_marker(run: Run) -> None:
    """8,000 characters of a stream are shown; the marker counts what is missing."""
    stdout = run("print('é' * 9000)").executions[0].stdout
    assert (
        stdout
        == "é" * 6000 + "\n[... 1001 characters of output left out ...]\n" + "é" * 1999 + "\n"
    )


def test_a_large_last_value_is_named_not_walked(run: Run) -> None:
    """Neither a long text nor a long list as last expression takes the statement back."""
    loop = run("x = 'y' * 2_000_000\nx", "list(range(200_000))")
    assert [e.stdout for e in loop.executions[:2]] == [
        "<str too large to be shown: print a part of it>\n",
        "<list too large to be shown: print a part of it>\n",
    ]


def test_a_raising_statement_keeps_what_it_did_before(run: Run) -> None:
    """As in any session: variables and nodes made before the exception are there."""
    loop = run("x = 1\nfoo = view('a.txt')\n1 / 0", "print(x, foo.path)")
    first = loop.executions[0]
    assert first.status is ExecutionStatus.ERROR
    assert first.exception is not None
    assert (first.exception.type, first.exception.message) == (
        "ZeroDivisionError",
        "division by zero",
    )
    assert (
        first.exception.trace_summary.splitlines()[1] == '  File "<statement>", line 3, in <module>'
    )
    assert loop.executions[1].stdout == "1 a.txt\n"


def test_a_long_exception_message_is_bounded(run: Run) -> None:
    """What a statement raises goes into records that have a size limit."""
    exception = run("raise ValueError('x' * 5_000_000)").executions[0].exception
    assert exception is not None
    assert len(exception.message) < 2_200
    assert len(exception.trace_summary) < 2_200


def test_the_namespace_diff_names_what_a_statement_did(run: Run) -> None:
    """Added and changed variables, with type, size and short repr."""
    loop = run("a = 1\nb = [1, 2]\nfoo = view('a.txt')", "a = 'x'\nb.append(3)\nfoo = None")
    view = TypeInfo(type="ViewHandle", repr="<view-1>")
    assert loop.executions[0].state_diff.added == {
        "a": TypeInfo(type="int", repr="1"),
        "b": TypeInfo(type="list", repr="[1, 2]", size=2),
        "foo": view,
    }
    assert loop.executions[1].state_diff.changed == {
        "a": ChangeInfo(
            before=TypeInfo(type="int", repr="1"), after=TypeInfo(type="str", repr="'x'", size=1)
        ),
        "b": ChangeInfo(
            before=TypeInfo(type="list", repr="[1, 2]", size=2),
            after=TypeInfo(type="list", repr="[1, 2, 3]", size=3),
            paths=("b[2]",),
        ),
        "foo": ChangeInfo(before=view, after=TypeInfo(type="NoneType", repr="None")),
    }


def test_builtin_names_may_be_variables(run: Run) -> None:
    """``list = ...`` and ``type = ...`` are common, and break neither the listing nor the check of
    the next statement.
    """
    loop = run(
        "type = 'a'\nlen = 5\nlist = ls()\nstr = 1\nlocals = 2\nrepr = 3\nException = 4",
        "x = 1\nprint(type, list)",
    )
    assert [e.status for e in loop.executions[:2]] == [ExecutionStatus.OK, ExecutionStatus.OK]
    assert loop.turns[1].variables == (
        "Exception",
        "len",
        "list",
        "locals",
        "repr",
        "str",
        "type",
        "x",
    )


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def finish(x): return x", "finish"),
        ("for view in [1]: view('a')", "view"),
        ("All = 7", "All"),
        ("def take(v): pass", "take"),
    ],
)
def test_a_name_of_the_contract_cannot_be_lost(run: Run, source: str, name: str) -> None:
    """There is no ``del``: a job that bound ``finish`` could never end.

    The statement is taken back.
    """
    loop = run(
        f"x = 1\nfoo = open('a.txt')\n{source}",
        "foo = view('a.txt').SetTokens(All)\nprint(take(1))",
    )
    exception = loop.executions[0].exception
    assert exception is not None
    assert exception.type in ("NameError", "TypeCheckError")
    assert name in exception.message
    assert loop.turns[0].variables == ()
    assert loop.executions[1].stdout == "1\n"


def test_the_clock_is_workflow_time(run: Run) -> None:
    """The same in a replay; sleeping takes no time."""
    loop = run(
        "import datetime, time\ntime.sleep(3)\nprint(time.time(), datetime.datetime.now(),"
        " datetime.date.today())"
    )
    assert loop.executions[0].stdout == "1750000060.0 2025-06-15 15:07:40 2025-06-15\n"


def test_random_numbers_follow_from_the_job_and_go_on(workspace: Path, run: Run) -> None:
    """The same job draws the same numbers, in one statement or in two."""
    two = run("import random\nprint(random.random())", "print(random.random())")
    one = run("import random\nprint(random.random())\nprint(random.random())")
    assert two.executions[0].stdout + two.executions[1].stdout == one.executions[0].stdout
    assert two.executions[0].stdout != two.executions[1].stdout


def test_coroutines_of_the_statement_run(run: Run) -> None:
    """``async def``, ``await`` at the top and ``gather`` work; tools are called without
    ``await``.
    """
    loop = run(
        "import asyncio\nasync def f(q): return search(q)\nprint(await f('a'))",
        "print(asyncio.run(asyncio.gather(f('b'), f('c'))))",
    )
    assert [e.stdout for e in loop.executions[:2]] == [
        "['a 0', 'a 1']\n",
        "[['b 0', 'b 1'], ['c 0', 'c 1']]\n",
    ]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("raise SystemExit('bye')", "SystemExit"),
        ("raise SystemExit(3)", "RuntimeError"),
        ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
        ("print(10 ** 5000)", "ValueError"),
        ("assert 1 == 2", "AssertionError"),
    ],
)
def test_odd_exceptions_are_ordinary_errors(run: Run, source: str, kind: str) -> None:
    """Each is an error the model sees, and the job goes on."""
    loop = run(source, "print('on')")
    exception = loop.executions[0].exception
    assert isinstance(exception, ExceptionInfo)
    assert exception.type == kind
    assert loop.executions[1].stdout == "on\n"


def test_a_huge_int_can_be_computed_with(run: Run) -> None:
    """It is listed without a repr, since printing it is refused."""
    loop = run("x = 10 ** 5000", "print(x % 7)\nx")
    (info,) = loop.executions[0].state_diff.added.values()
    assert (info.type, info.repr, len(info.digest)) == ("int", "<no repr>", 16)
    assert loop.executions[1].stdout.startswith("2\n<int: Exceeds the limit")
