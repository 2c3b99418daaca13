"""Numbers are rounded as Python rounds them."""

from __future__ import annotations

from pathlib import Path

from plain_loop import PlainLoop, statements

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

SHARES = [*(n / 8000 for n in range(0, 4000, 7)), *(n * 1.115 for n in range(500))]


def test_round_gives_what_python_gives(tmp_path: Path) -> None:
    """The nearest number of so many digits: 2.675 is a little less than that, and becomes 2.67."""
    wanted = [round(x, n) for x in SHARES for n in (1, 2, 3)]
    source = f"made = [round(x, n) for x in {SHARES!r} for n in (1, 2, 3)]\n"
    source += f"print([(a, b) for a, b in zip(made, {wanted!r}) if a != b])"
    execution = PlainLoop(tmp_path, statements(source)).run().replayed().executions[0]
    assert execution.stdout == "[]\n"


def test_round_takes_what_python_takes(tmp_path: Path) -> None:
    """Other numbers, no digits, digits before the point, and a statement's own function."""
    source = (
        "from decimal import Decimal\n"
        "print(round(2.5), round(2.675, ndigits=2), round(number=-2.675, ndigits=2), round(7, 2))\n"
        "print(round(Decimal('2.675'), 2), round(1234.5, -2), round(float('inf'), 2), round(5))\n"
        "print(list(map(round, [1.5, 2.5])), round(1.5, None))\n"
        "try:\n    round('a', 2)\nexcept TypeError as e:\n    print(e)\n"
        "def f(round):\n    return round(1, 2)\n"
        "print(f(lambda a, b: a + b))\n"
    )
    execution = PlainLoop(tmp_path, statements(source)).run().replayed().executions[0]
    assert execution.exception is None
    assert execution.stdout == (
        "2 2.67 -2.67 7\n2.68 1200.0 inf 5\n[2, 2] 2\ntype str doesn't define __round__ method\n3\n"
    )


def test_a_run_of_before_rounds_as_it_did_then() -> None:
    """Its history has what came of it."""
    assert lower("round(x, 2)", dialect=Dialect.WRITES).pieces == ()
    assert "_round" in lower("round(x, 2)").pieces
