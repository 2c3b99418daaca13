"""``spawn``: from what a statement wrote to the question of which sub-job is to be started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from runtime.base.result_schemas import before_bounds
from runtime.base.result_schemas.faults import schema_fault
from runtime.base.spec.models import Amount
from runtime.base.values import Value
from runtime.context import api
from runtime.context.outcomes import Refused

MOST_GOAL = 20_000
"""Characters of a sub-job's goal."""

MOST_COUNT = 10**308
"""Turns or tokens that can be asked for: floats end there, and with them what a refusal can say.

No budget is so large; what is less is refused by what is left.
"""


class SpawnRequest(Value):
    """A sub-job to be started.

    ``lent`` is its budget. ``call`` is the digest of what it is to do, and ``number`` counts the
    sub-jobs of the job that were to do the same before: by these it is known again when the
    statement is executed anew.
    """

    goal: str
    result: dict[str, Any] | None = None
    lent: Amount
    call: str
    number: int = 0


class Wish(NamedTuple):
    """What a call of ``spawn`` asks for; what is None the job decides."""

    goal: str
    result: dict[str, Any] | None
    turns: int | None
    tokens: int | None
    usd: float | None


Lend = Callable[[Wish], SpawnRequest]
"""The question for a wish, with a budget out of the job's.

It raises ``Refused`` where there is none for it.
"""


def wish_of(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    plain: Callable[[Any, str], Any],
    bounded: Callable[[], bool],
) -> Wish:
    """What a call asks for; ``plain`` makes JSON data of a value, ``bounded`` tells whether schemas
    are refused that cannot be checked in bounded work.

    Raises:
        Refused: if its arguments do not fit.
    """
    bound = api.SPAWN.bind(args, kwargs)
    goal, result = bound["goal"], bound.get("result")
    if not isinstance(goal, str) or not goal.strip():
        raise Refused(TypeError, "spawn(): goal is a text that says what the sub-job is to do")
    if len(goal) > MOST_GOAL:
        raise Refused(ValueError, f"spawn(): a goal has at most {MOST_GOAL:,} characters")
    return Wish(
        goal=goal,
        result=None if result is None else _schema(plain(result, "result"), bounded),
        turns=_count(bound, "turns"),
        tokens=_count(bound, "tokens"),
        usd=_dollars(bound.get("usd")),
    )


def _schema(value: Any, bounded: Callable[[], bool]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(TypeError, "spawn(): result is a JSON Schema, as a dict")
    fault = schema_fault(value)
    if fault is not None and not bounded():
        fault = before_bounds.schema_fault(value)
    if fault is not None:
        raise Refused(ValueError, f"spawn(): result: {fault}")
    return value


def _count(bound: dict[str, Any], name: str) -> int | None:
    value = bound.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(ValueError, f"spawn(): {name} is a whole number from 1 on")
    if value > MOST_COUNT:
        raise Refused(ValueError, f"spawn(): {name} is more than can be lent")
    return value


def _dollars(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
        raise Refused(ValueError, "spawn(): usd is a number of US dollars above 0")
    return float(value)
