"""A naive View, written from the rules of issue 3 alone: slow, recomputed from scratch, sharing no
code with the real one.

It works on plain tuples: ``(kind, id, ...)``, so that the real code's helpers cannot leak in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.history.events import CondensationSummaryEvent


@dataclass
class Naive:
    shown: list[Any] = field(default_factory=list)
    indices: set[int] = field(default_factory=lambda: {0})
    request: bool = False
    rejected: set[str] = field(default_factory=set)


def is_action(event: Any) -> bool:
    return event.type == "action"


def is_result(event: Any) -> bool:
    return event.type in {"observation", "user_reject", "agent_error"}


def naive_view(log: list[Any], pinned: tuple[str, ...] = ("system", "goal")) -> Naive:
    """The View of ``log`` by the rules, condensations applied in log order."""
    state = Naive()
    forgotten_responses: dict[str, int] = {}
    known: set[str] = set()
    summaries: list[tuple[int, Any]] = []
    del summaries
    order: list[Any] = []
    gone: set[str] = set()
    for at, event in enumerate(log):
        if event.type == "condensation_request":
            state.request = True
        elif event.type == "condensation":
            sound = _sound(log[:at], forgotten_responses)
            shown = [
                e
                for e in order
                if e.id not in gone and (e.id in sound or e.type == "condensation_summary")
            ]
            verdict = _condense(event, shown, known, pinned)
            if verdict is None:
                state.rejected.add(event.id)
            else:
                leaving, place = verdict
                for e in shown:
                    if e.id in leaving and is_action(e):
                        forgotten_responses.setdefault(e.llm_response_id, at)
                gone |= leaving
                state.request = False
                if event.summary is not None:
                    kept = [e for e in shown if e.id not in leaving]
                    summary = CondensationSummaryEvent(
                        id=f"{event.id}-summary", turn=0, summary=event.summary
                    )
                    before = kept[place].id if place < len(kept) else None
                    where = next((n for n, e in enumerate(order) if e.id == before), len(order))
                    order.insert(where, summary)
                    known.add(summary.id)
        elif event.type in {"message", "action", "condensation_summary"} or is_result(event):
            order.append(event)
        known.add(event.id)
    sound = _sound(log, forgotten_responses)
    state.shown = [
        e for e in order if e.id not in gone and (e.id in sound or e.type == "condensation_summary")
    ]
    state.indices = naive_indices(state.shown)
    return state


def _sound(log: list[Any], forgotten: dict[str, int]) -> set[str]:
    """The ids of messages, and of calls and results that are well formed, or may still become
    so.
    """
    actions: list[tuple[int, Any]] = []
    for at, event in enumerate(log):
        if is_action(event):
            call = event.tool_call_id
            twins = [
                a
                for _, a in actions
                if a.llm_response_id == event.llm_response_id and a.tool_call_id == call
            ]
            if call is None or not twins:
                actions.append((at, event))
    answer: dict[int, int] = {}
    for at, event in enumerate(log):
        if not is_result(event) or event.tool_call_id is None:
            continue
        for place, call in actions:
            same = place < at and call.tool_call_id == event.tool_call_id and place not in answer
            if not same or _refused(place, call, actions, answer, forgotten):
                continue
            if all(b.llm_response_id == call.llm_response_id for p, b in actions if place < p < at):
                answer[place] = at
    sound = {e.id for e in log if e.type in {"message", "condensation_summary"}}
    sound |= {e.id for e in log if is_result(e) and e.tool_call_id is None}
    broken = _broken(actions, answer, forgotten)
    for place, call in actions:
        if call.llm_response_id in broken:
            continue
        if forgotten.get(call.llm_response_id, place) < place:
            continue
        sound.add(call.id)
        if place in answer:
            sound.add(log[answer[place]].id)
    return sound


def _refused(
    place: int, call: Any, actions: Any, answer: dict[int, int], forgotten: dict[str, int]
) -> bool:
    if forgotten.get(call.llm_response_id, place) < place:
        return True
    earlier = [(p, a) for p, a in actions if p < place]
    return call.llm_response_id in _broken([*earlier, (place, call)], answer, forgotten)


def _broken(actions: Any, answer: dict[int, int], forgotten: dict[str, int]) -> set[str]:
    """Responses with a call that had no result when an action of another response came."""
    broken: set[str] = set()
    for place, call in actions:
        if call.tool_call_id is None or forgotten.get(call.llm_response_id, place) < place:
            continue
        others = [p for p, b in actions if p > place and b.llm_response_id != call.llm_response_id]
        if others and answer.get(place, 10**9) > min(others):
            broken.add(call.llm_response_id)
    return broken


def _condense(event: Any, shown: list[Any], known: set[str], pinned: tuple[str, ...]) -> Any:
    if event.forgotten_event_ids and not any(i in known for i in event.forgotten_event_ids):
        return None
    if event.summary is not None and f"{event.id}-summary" in known:
        return None
    asked = {e.id for e in shown if e.id in event.forgotten_event_ids}
    leaving = {
        e.id for e in shown if e.id in asked and not (e.type == "message" and e.source in pinned)
    }
    pairs, _ = naive_pairs(shown)
    units = naive_units(shown, pairs)
    while True:
        wider = set(leaving)
        for unit in units:
            names = {shown[p].id for p in unit}
            if names & wider:
                wider |= names
        if wider == leaving:
            break
        leaving = wider
    last = max(naive_indices(shown))
    if any(e.id in leaving for e in shown[last:]):
        return None
    if event.summary is None and not leaving:
        return None
    if event.summary is not None and not event.summary.strip():
        return None
    kept = [e for e in shown if e.id not in leaving]
    allowed = naive_indices(kept)
    wanted = event.summary_offset
    if wanted is None:
        places = [n for n, e in enumerate(shown) if e.id in leaving]
        wanted = places[0] if places else max(allowed)
    below = [i for i in allowed if i <= wanted]
    return leaving, (max(below) if below else min(allowed))


def naive_pairs(events: list[Any]) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of positions, and the positions of calls that have no result."""
    pairs: list[tuple[int, int]] = []
    for at, event in enumerate(events):
        if not is_result(event):
            continue
        before = [(p, a) for p, a in enumerate(events[:at]) if is_action(a)]
        if not before:
            continue
        newest = before[-1][1].llm_response_id
        taken = {p for p, _ in pairs}
        if event.tool_call_id is None:
            p, last = before[-1]
            if last.tool_call_id is None and p not in taken:
                pairs.append((p, at))
            continue
        run: list[int] = []
        for p, a in reversed(before):
            if a.llm_response_id != newest:
                break
            run.append(p)
        fits = [p for p in run if events[p].tool_call_id == event.tool_call_id]
        if fits and fits[0] not in taken:
            pairs.append((fits[0], at))
    answered = {p for p, _ in pairs}
    waiting = [
        p
        for p, a in enumerate(events)
        if is_action(a) and a.tool_call_id is not None and p not in answered
    ]
    return pairs, waiting


def naive_batches(events: list[Any]) -> list[list[int]]:
    batches: dict[Any, list[int]] = {}
    for p, e in enumerate(events):
        if is_action(e):
            batches.setdefault(e.llm_response_id, []).append(p)
    return list(batches.values())


def naive_loops(events: list[Any]) -> list[list[int]]:
    loops: list[list[int]] = []
    for start, event in enumerate(events):
        if not (is_action(event) and event.thinking_blocks):
            continue
        loop = [start]
        for at in range(start + 1, len(events)):
            follower = events[at]
            if is_action(follower) and follower.thinking_blocks:
                break
            if not is_action(follower) and not is_result(follower):
                break
            loop.append(at)
        loops.append(loop)
    return loops


def naive_units(events: list[Any], pairs: list[tuple[int, int]]) -> list[list[int]]:
    return naive_batches(events) + naive_loops(events) + [list(p) for p in pairs]


def naive_indices(events: list[Any]) -> set[int]:
    """Every gap that is strictly inside no unit, behind no waiting call, and not before a pinned
    head's end.
    """
    pairs, waiting = naive_pairs(events)
    head = 0
    while (
        head < len(events)
        and events[head].type == "message"
        and events[head].source in {"system", "goal"}
    ):
        head += 1
    units = naive_units(events, pairs)
    return {
        gap
        for gap in range(head, len(events) + 1)
        if not any(min(unit) < gap <= max(unit) for unit in units)
        and not any(p < gap for p in waiting)
    }
