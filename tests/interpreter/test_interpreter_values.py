"""The job's functions are values in a statement, as Python's functions are."""

from __future__ import annotations

import pytest
from plain_loop import Run

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

FUNCTIONS = frozenset({"view", "search", "take"})


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("print([v.path for v in map(view, ['a.txt', 'src/foo.py'])])", "['a.txt', 'src/foo.py']"),
        ("print([f('q') for f in (search, take)])", "[['q 0', 'q 1'], 'q']"),
        (
            "from functools import partial\nprint(partial(search, limit=1)('q'))",
            "['q 0']",
        ),
        (
            "def each(f, *values):\n    return [f(v) for v in values]\nprint(each(take, 1, 2))",
            "[1, 2]",
        ),
        ("print({'s': search}['s']('q', limit=1), callable(search))", "['q 0'] True"),
        ("print(sorted(['b', 'a'], key=search), max(['a', 'b'], key=take))", "['a', 'b'] b"),
        ("f = search if True else take\nprint(f'{list(map(f, [1]))}')", "[['1 0', '1 1']]"),
        ("print(f'{list(map(take, [1]))}')", "[1]"),
        # What a statement binds is its own.
        ("def f(search):\n    return search\nprint(f(3), [take for take in [1]])", "3 [1]"),
        ("def f():\n    def take(x): return x + 1\n    return map(take, [1])\nprint(*f())", "2"),
    ],
)
def test_a_function_of_the_job_is_a_value(run: Run, source: str, printed: str) -> None:
    """Handed on, kept and called, it does what its call does, live and replayed."""
    execution = run(source).executions[0]
    assert execution.exception is None
    assert execution.stdout == printed + "\n"


def test_a_variable_keeps_a_function_for_later_statements(run: Run) -> None:
    """As any other function, with its name; it is one and the same."""
    loop = run(
        "from __future__ import annotations\nfind = kept = search",
        "print(find('q', limit=1), find is kept, {f.__name__: 1 for f in (kept, take)})",
    )
    assert loop.executions[1].stdout == "['q 0'] True {'search': 1, 'take': 1}\n"


def test_a_traceback_shows_the_statement_alone(run: Run) -> None:
    """What stands for the function is not the model's."""
    exception = run("x = 1\nxs = list(map(fail, ['ValueError']))").executions[0].exception
    assert exception is not None
    assert exception.trace_summary == (
        "Traceback (most recent call last):\n"
        '  File "<statement>", line 2, in <module>\n'
        "    xs = list(map(fail, ['ValueError']))\n"
        "ValueError: no such thing"
    )


LOOPED = """
from itertools import groupby
import re
for key, group in groupby(["aa", "ab", "b"], key=lambda s: s[0]):
    m = re.match(r"(.)", key)
    print(m.group(1), f"{len(x := list(group))} {x}")
print([note for note in "ab"], {view: 1 for view, show in [(1, 2)]})
"""


def test_a_loop_may_have_a_variable_of_such_a_name(run: Run) -> None:
    """``for key, group in groupby(...)`` is what everybody writes; the function stays."""
    loop = run(LOOPED, "print(group(view('a.txt')))")
    assert loop.executions[0].exception is None
    assert loop.executions[0].stdout == "a 2 ['aa', 'ab']\nb 1 ['b']\n['a', 'b'] {1: 1}\n"
    assert loop.executions[1].stdout == "GroupHandle(obj_id='group-2')\n"
    assert "group" not in loop.turns[0].variables


@pytest.mark.parametrize(
    "source",
    [
        "group = 1",
        "for group in [1]:\n    group = 2",
        "def f(group): return group\nfor group in [1]: f(group)",
        "for note in [1]: pass\nnote('a')",
    ],
)
def test_other_variables_of_such_a_name_are_refused(run: Run, source: str) -> None:
    """The next statement would not know which of the two is meant."""
    exception = run(source).executions[0].exception
    assert exception is not None
    assert "cannot be assigned" in exception.message or "TypeCheckError" in exception.type


def test_a_call_of_the_job_may_be_awaited(run: Run) -> None:
    """It is answered when it is made, so there is nothing to wait for."""
    source = (
        "async def both():\n    return [await search('a', limit=1), (await take(2)) + 1]\n"
        "print(await both(), await (take)(f'{await take(1)}'), await view('a.txt'))"
    )
    execution = run(source).executions[0]
    assert execution.exception is None
    assert execution.stdout == "[['a 0'], 3] 1 ViewHandle(obj_id='view-1')\n"


def test_what_cannot_call_the_job_says_what_to_write(run: Run) -> None:
    """A function of the interpreter's own that calls another cannot wait for an answer."""
    execution = run("import itertools\nprint(list(itertools.starmap(take, [(1,)])))").executions[0]
    assert execution.exception is not None
    assert execution.exception.message == (
        "take is a call of the job's, which a function that is handed to reduce, starmap, groupby"
        " and the like cannot make: write a loop"
    )


@pytest.mark.parametrize(
    "source",
    ["xs = map(view, ps)", "f = search", "await take(1)", "for view in x: print(view)"],
)
def test_a_run_of_before_has_no_such_values(source: str) -> None:
    """Its history has the error."""
    before = lower(source, functions=FUNCTIONS, dialect=Dialect.WRITES)
    assert before == lower(source, dialect=Dialect.WRITES)
    assert before.source != lower(source, functions=FUNCTIONS).source


def test_a_run_of_before_adds_lists_to_a_list() -> None:
    """Its history has the error; what is read twice has no call in it."""
    assert lower("a += b", dialect=Dialect.ALIKE).source == "a += b"
    assert lower("a[-1].b += b").source == "a[-1].b += holdfast_added(a[-1].b, (b))"
    for source in ("a[f()] += b", "a += 1", "a -= b", "a[1:] += b"):
        assert lower(source).source == source
