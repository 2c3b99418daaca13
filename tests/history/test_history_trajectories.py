"""Recorded conversations of real models: imported as events, condensed at every index, valid for
every provider.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from history_builders import forget, ids, log_of

from runtime.base.errors import InputError
from runtime.history.codec import event_from_json, event_to_json
from runtime.history.events import ActionEvent, HistoryRepaired, MessageEvent, ObservationEvent
from runtime.history.log import EventLog
from tests.history.oracle.provider_rules import check_view
from tests.history.oracle.trajectories import events_of_trajectory

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data" / "trajectories"
DATA = SHARED if SHARED.is_dir() else ROOT / "tests" / "data"
NAMES = [
    "marshmallow-1867-text-actions.traj.json",
    "marshmallow-1867-tool-calls.traj.json",
    "pydicom-1458.traj.json",
]


def load(name: str, folder: Path = DATA) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_projects_copy_is_the_shared_file(name: str) -> None:
    """A fresh clone has the same recordings."""
    assert load(name) == load(name, ROOT / "tests" / "data")


@pytest.mark.parametrize(
    ("name", "messages", "actions", "results"),
    [(NAMES[0], 2, 11, 10), (NAMES[1], 2, 11, 11), (NAMES[2], 3, 12, 11)],
)
def test_import_finds_messages_actions_and_results(
    name: str, messages: int, actions: int, results: int
) -> None:
    """Every message of the recording becomes one event; call ids that the model used again are
    paired by order.
    """
    events = events_of_trajectory(load(name))
    kinds = [type(event) for event in events]
    assert [kinds.count(k) for k in (MessageEvent, ActionEvent, ObservationEvent)] == [
        messages,
        actions,
        results,
    ]
    log = log_of(*events)
    assert not any(isinstance(event, HistoryRepaired) for event in log)
    assert ids(log.view) == ids(events)
    assert check_view(log.view.events) == []
    assert tuple(event_from_json(event_to_json(event)) for event in events) == tuple(events)


def test_demonstration_is_the_frameworks_and_the_goal_the_task() -> None:
    """The demonstration before the task is no goal: it may be forgotten, the task may not."""
    system, demonstration, goal, *_ = events_of_trajectory(load(NAMES[2]))
    assert [e.source for e in (system, demonstration, goal)] == ["system", "framework", "goal"]  # type: ignore[union-attr]


@pytest.mark.parametrize("summary", [None, "what happened there"], ids=["forgotten", "summarised"])
@pytest.mark.parametrize("name", NAMES)
def test_condensed_between_any_two_indices_it_is_valid(name: str, summary: str | None) -> None:
    """Whatever stretch is forgotten, with and without a summary, both providers take the prompt,
    then and later.
    """
    events = events_of_trajectory(load(name))
    gaps = list(log_of(*events).view.manipulation_indices)
    assert len(gaps) > 10
    for start, stop in combinations(gaps, 2):
        log = log_of(*events)
        forgotten = log.view.forgettable(start, stop)
        if not forgotten and summary is None:
            continue
        assert log.append(forget("c", forgotten, summary)) == ()
        assert len(log.view) == len(events) - len(forgotten) + (summary is not None)
        assert check_view(log.view.events) == []
        assert EventLog.from_events(log.events).view == log.view


@pytest.mark.parametrize("name", NAMES)
def test_condensed_after_every_event_it_is_valid(name: str) -> None:
    """A condensation after each single event of the recording, of all that may go then, leaves
    valid prompts to the end.
    """
    events = events_of_trajectory(load(name))
    for moment in range(1, len(events) + 1):
        log = log_of(*events[:moment])
        gaps = list(log.view.manipulation_indices)
        log.append(forget("c", log.view.forgettable(gaps[0], gaps[-1]), "so far"))
        for event in events[moment:]:
            log.append(event)
            assert check_view(log.view.events) == []


@pytest.mark.parametrize(
    "broken", [{}, {"history": []}, {"history": [{"role": "oracle", "content": "x"}]}]
)
def test_what_is_no_trajectory_is_refused(broken: Any) -> None:
    """The error says what is missing."""
    with pytest.raises(InputError, match=r"history|oracle"):
        events_of_trajectory(broken)
