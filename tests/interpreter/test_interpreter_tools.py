"""Tools in a statement: plain arguments out, plain values and exceptions back, in mid-statement."""

from __future__ import annotations

from plain_loop import Run


def test_a_tool_suspends_the_statement_and_its_value_resumes_it(run: Run) -> None:
    """In expressions, loops, comprehensions, functions and ``lambda``; each call is one record."""
    loop = run(
        "a, b = search('x')\n"
        "both = [search(q, limit=1)[0] for q in ('y', 'z')]\n"
        "def ask(q): return len(search(q))\n"
        "print(a, b, both, sum(ask(q) for q in 'pq'), (lambda: take({'k': [1, None, 2.5]}))())"
    )
    assert loop.executions[0].stdout == "x 0 x 1 ['y 0', 'z 0'] 4 {'k': [1, None, 2.5]}\n"
    assert [effect.name for effect in loop.executions[0].effects] == ["search"] * 5 + ["take"]


def test_paths_and_tuples_become_plain(run: Run) -> None:
    """A path is its text relative to the workspace."""
    loop = run("from pathlib import Path\nprint(take([Path('src') / 'foo.py', (1, 2)]))")
    assert loop.executions[0].stdout == "['src/foo.py', [1, 2]]\n"


def test_a_tools_exception_is_raised_by_its_own_name(run: Run) -> None:
    """And can be caught by it; a name that the interpreter does not know becomes a RuntimeError
    that tells it.
    """
    loop = run(
        "try:\n    fail('ValueError')\nexcept ValueError as error:\n    print('caught',"
        " error)\nfail('Odd')",
        "print('on')",
    )
    first = loop.executions[0]
    assert first.stdout == "caught no such thing\n"
    assert first.exception is not None
    assert (first.exception.type, first.exception.message) == ("RuntimeError", "Odd: no such thing")
    assert [effect.error for effect in first.effects] == ["ValueError", "Odd"]


def test_a_call_where_the_interpreter_cannot_wait_is_told(run: Run) -> None:
    """Inside ``map`` of two lists no statement can be suspended; keys of ``sorted`` are called
    before, once for each.
    """
    source = "seen = []\nsorted(['b', 'a'], key=lambda q: (seen.append(q), search(q)[0])[1])"
    assert run(source + "\nprint(seen)").executions[0].stdout == "['b', 'a']\n"
    source = "map(lambda a, b: search(b)[0], ['b'], ['a'])"
    exception = run(source).executions[0].exception
    assert exception is not None
    assert exception.type == "NotImplementedError"
