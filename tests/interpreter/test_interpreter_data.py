"""What leaves a statement by a call of the job is data, or refused with what to write instead."""

from __future__ import annotations

import pytest
from plain_loop import Run

from runtime.context.graph import ContextGraph
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.host import Failure
from runtime.interpreter.job_host import JobHost

LIKE_LISTS = """
from collections import Counter, deque
import itertools
d = {"k": 1}
result = [
    take(range(3)),
    take(value=d.keys()),
    take([d.values(), (d.items(), None)]),
    take({"m": map(str, [1]), "z": zip([1], [2])}),
    take(n for n in [1]),
    take(iter([1])),
    take(deque([1, 2])),
    take(itertools.chain([1], range(1))),
    take(Counter("aab")),
    take(x := [[1], "a"]),
]
finish({"all": result, "first": iter(result[0])})
"""


def test_what_is_a_list_but_for_its_type_is_one(run: Run) -> None:
    """At any depth; it was shown as ``range(0, 3)`` or ``<list_iterator object>``."""
    loop = run(LIKE_LISTS)
    assert loop.executions[0].exception is None
    assert loop.stop is not None
    assert loop.stop.result == {
        "all": [
            [0, 1, 2],
            ["k"],
            [[1], [[["k", 1]], None]],
            {"m": ["1"], "z": [[1, 2]]},
            [1],
            [1],
            [1, 2],
            [1, 0],
            {"a": 2, "b": 1},
            [[1], "a"],
        ],
        "first": [0, 1, 2],
    }


ONLY = "only plain data (None, bool, int, float, str, list, dict) is taken"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import re\ntake(re.match('a', 'a'))", f"an argument holds a Match; {ONLY}"),
        ("finish({'f': len})", f"an argument holds a builtin_function_or_method; {ONLY}"),
        (
            "import itertools\ntake(itertools.count())",
            f"an argument holds a count; {ONLY}",
        ),
        ("x = [1]\nx.append(x)\nfinish(x)", "an argument holds itself, which plain data cannot"),
        (
            "x = {}\nx['x'] = [x]\ntake(x)",
            "an argument holds itself, which plain data cannot",
        ),
        ("take({1})", f"take(): argument 1 is a set; {ONLY}: write sorted(...) of the set"),
        ("take(b'a')", f"take(): argument 1 is a bytes; {ONLY}: write data.decode()"),
        (
            "finish({1: 2})",
            "finish(): result has the key 1; keys must be strings: write {str(key): value for key,"
            " value in d.items()}",
        ),
        (
            "from datetime import date\nfinish([date(2024, 1, 1)])",
            f"finish(): result[0] is a date; {ONLY}: write str(...) of it",
        ),
        (
            "take(view('a.txt'))",
            f"take(): argument 1 is the handle view-1; {ONLY}: write what it shows, handle.text",
        ),
        (
            "class P: pass\ntake(P())",
            f"take(): argument 1 is a P; {ONLY}: write a dict of what it holds (asdict of a"
            " dataclass), or .value of an Enum's member",
        ),
        (
            "take(open('a.txt'))",
            f"take(): argument 1 is a MontyFileHandle; {ONLY}: write f.read()",
        ),
    ],
)
def test_what_is_no_data_is_refused_with_what_to_write(run: Run, source: str, told: str) -> None:
    """Also what the host would be shown as a text, which it took for one."""
    loop = run(source)
    assert loop.executions[0].exception is not None
    assert loop.executions[0].exception.message == told


def test_a_run_of_before_is_told_what_it_was_told_then() -> None:
    """Its history has a digest of the words."""
    host = JobHost(ContextGraph(len), frozenset(), None, 1, 0.0, dialect=Dialect.WRITES)
    answer = host.function("finish", ({1},), {})
    assert answer == Failure("TypeError", f"finish(): result is a set; {ONLY}")
