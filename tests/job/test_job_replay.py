"""Exact resume, with no Temporal: a job replayed from any point of its history comes to the same
end.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_loop import Messages, PlainLoop, statements

from runtime.interpreter.run import InterpreterDrift
from tests.tiers.tiers import examples

SOURCES = [
    "x = 1",
    "x += 1\nprint(x)",
    "foo = view('a.py', tokens=40)",
    "bar = view('b.py', freq='Sync')",
    "foo.SetLod(1).SetTokens(All)",
    "s = group(foo, bar, tokens=60)",
    "s.Add(view('a.py', pos=9, tokens=20))\nshow(s)",
    "bar = foo\nfoo = None",
    "views = [view(p, tokens=30) for p in ('a.py', 'b.py')]",
    "pin(views[0])\nviews.pop()",
    "import random\nprint(random.random(), echo(random.randrange(9)))",
    "print(len(open('b.py').read()), echo({'k': [1]}))",
    "y = echo('a')\nfoo = view('a.py')\necho(1 / 0)",
    "open('nothing')",
    "def f(n): return echo(n) + n\nprint([f(n) for n in range(3)])",
    "while True: print('x' * 10_000)",
    "kept = ['a' * 30_000_000]\necho(1)",
    "x = = 1",
    "x.nope()",
    "print('word ' * 1500)",
]
"""Statements that change, read, call, fail, and end by a verdict; some need others, and fail
without.
"""


def echo(value: object) -> object:
    """A tool."""
    return value


def job_in(folder: Path, sources: list[str], context_tokens: int = 4000) -> PlainLoop:
    """A job that reads the state of its prompt, so that a resumed one goes on where it was."""
    (folder / "a.py").write_text("def a():\n    return 1\n" * 20)

    def between(turn: int) -> None:
        (folder / "b.py").write_text(f"# {turn // 2}\n" * (turn % 5 + 1))

    def policy(messages: Messages) -> str:
        turn = int(str(messages[-1]["content"]).rpartition("[budget: turn ")[2].partition(" ")[0])
        return sources[turn - 1] if turn <= len(sources) else "finish(None)"

    options = {"context_tokens": context_tokens}
    return PlainLoop(
        folder, policy, tools=[echo], between=between, options=options, messages={2: ["Go on."]}
    )


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=10), st.data())
def test_a_job_killed_anywhere_comes_to_the_same_end(
    sources: list[str], data: st.DataObject
) -> None:
    """Its history is replayed to the cut, then it goes on live: all digests, events and executions
    are equal.
    """
    with tempfile.TemporaryDirectory() as folder:
        whole = job_in(Path(folder), sources).run().replayed()
        cut = data.draw(st.integers(0, len(whole.history)), label="killed after")
        resumed = whole.again(cut).run()
        assert resumed.turns == whole.turns
        assert resumed.executions == whole.executions
        assert resumed.stop == whole.stop
        assert [entry.kind for entry in resumed.history] == [entry.kind for entry in whole.history]


def test_a_statement_killed_at_each_of_its_effects_is_the_same_statement(tmp_path: Path) -> None:
    """Before and after every verdict, reading, file call and tool call of one statement, each of
    which ran once.
    """
    asked: list[object] = []

    def echo(value: object) -> object:
        asked.append(value)
        return value

    source = (
        "a = echo(1)\nfoo = view('a.py')\nb = open('b.py').read()\nprint(a, foo.path, b, echo(2))"
    )
    whole = job_in(tmp_path, [source])
    whole.tools = [echo]
    whole.run()
    assert [entry.kind for entry in whole.history[1:10]] == [
        "verdict",
        "tool",
        "verdict",
        "read",
        "verdict",
        "file",
        "verdict",
        "tool",
        "verdict",
    ]
    for cut in range(len(whole.history) + 1):
        asked.clear()
        resumed = whole.again(cut).run()
        assert resumed.turns == whole.turns
        recorded = [entry for entry in whole.history[:cut] if entry.kind == "tool"]
        assert len(asked) == 2 - len(recorded)


def test_a_replayed_statement_that_differs_is_drift(tmp_path: Path) -> None:
    """It fails loudly instead of going on with another state."""
    whole = job_in(tmp_path, ["print(echo(1))"]).run()
    changed = [
        (
            type(entry)(entry.kind, entry.value.replace('"value":1', '"value":2'))
            if entry.kind == "tool"
            else entry
        )
        for entry in whole.history
    ]
    again = whole.again()
    again.history = changed
    with pytest.raises(InterpreterDrift):
        again.run()


def test_the_plain_list_policy_finishes_after_its_statements(tmp_path: Path) -> None:
    """The loop's own helper."""
    loop = PlainLoop(tmp_path, statements("x = 1")).run()
    assert loop.job.turn == 2
