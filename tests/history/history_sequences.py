"""All event sequences up to a length, up to the renaming of responses and call ids, as a tree
walked depth first.

The alphabet: a message; an action of a new response (with or without thinking) or of one that was
begun before; a result; each action and result with a call id that was used before or the next new
one; two condensations, one that asks for whole units with a summary, one that asks for a single
event in the middle without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from history_builders import action, forget, message, result

from runtime.history.view import View

RESPONSES, CALLS = 2, 2
Symbol = tuple[Any, ...]


def symbols(responses: int, calls: int) -> Iterator[tuple[Symbol, int, int]]:
    """The next symbols after ``responses`` responses and ``calls`` call ids were used, and the
    counts after them.
    """
    yield ("message",), responses, calls
    for r in range(min(responses + 1, RESPONSES)):
        for thinking in (False, True) if r == responses else (False,):
            for c in range(min(calls + 1, CALLS)):
                yield ("action", r, c, thinking), max(responses, r + 1), max(calls, c + 1)
    for c in range(min(calls + 1, CALLS)):
        yield ("result", c), responses, max(calls, c + 1)
    yield ("forget units",), responses, calls
    yield ("forget one",), responses, calls


def event_of(symbol: Symbol, at: int, view: View) -> Any:
    """The symbol's event as the ``at``-th of a log with this View."""
    match symbol:
        case ("message" | "action" | "result", *_):
            return _shown(symbol, at)
        case ("forget units",):
            gaps = list(view.manipulation_indices)
            stop = gaps[1] if len(gaps) > 1 else len(view)
            return forget(f"e{at}", view.forgettable(gaps[0], stop), "what was", gaps[0])
    middle = view[len(view) // 2].id if len(view) else "nothing"
    return forget(f"e{at}", (middle,))


@cache
def _shown(symbol: Symbol, at: int) -> Any:
    """One that no View changes: hundreds of thousands of logs have it."""
    match symbol:
        case ("action", r, c, thinking):
            return action(f"e{at}", f"r{r}", f"c{c}", thinking=thinking)
        case ("result", c):
            return result(f"e{at}", f"c{c}")
    return message(f"e{at}")


def walk(first: Symbol | None, length: int, visit: Callable[[list[Any], View], None]) -> int:
    """Call ``visit`` with each log of up to ``length`` events and its live View; ``first`` picks
    one subtree.
    """
    visited = 0
    stack: list[tuple[list[Symbol], int, int, list[Any]]] = [([], 0, 0, [])]
    while stack:
        path, responses, calls, log = stack.pop()
        if len(path) == length:
            continue
        for symbol, r, c in symbols(responses, calls):
            if not path and first is not None and symbol != first:
                continue
            view = View()
            for event in log:
                view.append_event(event)
                view.events, view.manipulation_indices  # noqa: B018  reading must not disturb a live View
            longer = [*log, event_of(symbol, len(log), view)]
            view.append_event(longer[-1])
            visit(longer, view)
            visited += 1
            stack.append(([*path, symbol], r, c, longer))
    return visited
