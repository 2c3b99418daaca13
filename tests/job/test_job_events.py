"""The context's events stand in the record of the step after them, each once, with the ids that
executions name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from activities.brief import brief_events
from runtime.base.digests import canonical_json
from runtime.job.checkpoint import dump, load
from runtime.job.divergence import Aspect, compare_events
from runtime.job.happenings import MAX_EVENTS

STATEMENTS = (
    "a = view('a.txt').Run(freq='Sync')\nb = view('b.txt').Run(freq=('Periodic', 30))",
    "c = view('c.txt').Run(freq='Async')\ng = group(a, b, tokens=100).Run(freq='Sync')",
    "a.SetTokens(50).SetPos('2')\na.SetTokens(50)",
    "x = 1",
    "for n in range(700): a.SetPos(str(n % 3))",
    "finish(1)",
)


def _loop(workspace: Path) -> PlainLoop:
    def between(turn: int) -> None:
        for name in "abc":
            (workspace / f"{name}.txt").write_text(f"line {turn}\n" * (turn + 3))

    return PlainLoop(workspace, statements(*STATEMENTS), between=between).run()


def _types(events: tuple[dict[str, Any], ...]) -> set[str]:
    return {event["type"] for event in events}


def test_every_type_of_event_is_recorded_at_the_step_after_it(tmp_path: Path) -> None:
    """Calls and changes of the statement before, and what its tick and the background made of
    nodes.
    """
    loop = _loop(tmp_path)
    assert loop.happened[0] == ()
    assert {"method_called", "node_changed"} <= _types(loop.happened[1])
    assert {event["obj_id"] for event in loop.happened[1] if event["type"] == "tick_applied"} == {
        "view-1",
        "view-2",
    }
    assert _types(loop.happened[2]) >= {
        "method_called",
        "node_changed",
        "tick_applied",
        "group_recomputed",
    }
    assert _types(loop.happened[3]) >= {"async_payload_prepared", "async_payload_applied"}
    ids = [event["id"] for events in loop.happened for event in events if "id" in event]
    assert len(set(ids)) == len(ids)
    for turn, events in enumerate(loop.happened, 1):
        assert {int(event["id"].partition(".")[0]) for event in events if "id" in event} <= {
            turn - 1,
            turn,
        }


def test_an_execution_names_its_statements_events(tmp_path: Path) -> None:
    """What the statement called and changed, and nothing of the tick; a call names the node's
    digests.
    """
    loop = _loop(tmp_path)
    events = {event["id"]: event for event in loop.happened[3]}
    named = [events[one] for one in loop.executions[2].events]
    assert [event.get("method") for event in named if event["type"] == "method_called"] == [
        "SetTokens",
        "SetPos",
        "SetTokens",
    ]
    assert {event["type"] for event in named} == {"method_called", "node_changed"}
    calls = [event for event in named if event["type"] == "method_called"]
    assert calls[0]["after_digest"] == calls[1]["before_digest"]
    assert calls[2]["after_digest"] == calls[2]["before_digest"] == calls[1]["after_digest"]
    assert loop.executions[3].events == ()


def test_a_loop_of_calls_is_counted_beyond_a_bound(tmp_path: Path) -> None:
    """The record of a step is bounded, and says how much it leaves out."""
    events = _loop(tmp_path).happened[5]
    assert len(events) == MAX_EVENTS + 1
    assert events[-1]["type"] == "left_out"
    assert events[-1]["count"] > 700 - MAX_EVENTS


@pytest.mark.slow
def test_a_replay_of_the_history_gives_the_same_events(tmp_path: Path) -> None:
    """As it gives the same states."""
    loop = _loop(tmp_path)
    assert loop.again().run().happened == loop.happened


def test_a_checkpoint_carries_what_no_step_has_yet(tmp_path: Path) -> None:
    """Between a statement and the next call its events are the job's."""
    (tmp_path / "a.txt").write_text("a\n")
    job = PlainLoop(tmp_path, statements("a = view('a.txt')\na.SetTokens(30)\nfinish(1)")).run().job
    assert {event["type"] for event in job.happenings.events} == {"method_called", "node_changed"}
    again = load(job.spec, json.loads(json.dumps(dump(job))), count=len)
    assert again.happenings.events == job.happenings.events


def test_the_short_form_is_short(tmp_path: Path) -> None:
    """A call adds its words to a history, and one digest at most where the node was not called
    before.
    """
    loop = _loop(tmp_path)
    calls = [event for event in loop.happened[3] if event["type"] == "method_called"]
    short = brief_events(calls, 4, [])
    assert len(json.dumps(short[2])) < 90 < len(json.dumps(short[0])) < 190


def test_other_events_are_a_divergence_named_by_the_node() -> None:
    """The first event that differs, unless the node's state is told to differ already."""
    call = {
        "id": "1.2",
        "type": "method_called",
        "obj_id": "view-1",
        "method": "SetPos",
        "args": ["'1'"],
    }
    other = {**call, "id": "1.9", "args": ["'2'"]}
    (found,) = compare_events(1, [call], [other], ())
    assert (found.aspect, found.subject, found.recorded) == (
        Aspect.EVENT,
        "view-1",
        "method_called view-1.SetPos('1')",
    )
    assert compare_events(1, [call], [{**call, "id": "1.9"}], ()) == ()
    assert compare_events(1, [call], [other], {"view-1"}) == ()


def test_the_order_of_names_in_a_call_is_no_divergence() -> None:
    """A record is canonical JSON, which has its own."""
    call = {"id": "1.2", "type": "method_called", "obj_id": "view-1", "method": "view"}
    now = {**call, "args": ["'a.txt'"], "kwargs": {"tokens": "300", "lod": "1"}}
    recorded = json.loads(canonical_json(now))
    assert compare_events(1, [recorded], [now], ()) == ()
    (found,) = compare_events(1, [recorded], [{**now, "kwargs": {"tokens": "300"}}], ())
    assert found.recorded == "method_called view-1.view('a.txt', lod=1, tokens=300)"
