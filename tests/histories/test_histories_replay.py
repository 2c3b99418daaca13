"""Jobs that earlier code ran: their histories replay with the code of today, so a job that runs
survives a new release.
"""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.histories.record import KINDS, read
from tests.workflow.stage import activities_of, events_of, replayer


@pytest.mark.parametrize("kind", KINDS)
async def test_a_recorded_job_replays(kind: str) -> None:
    """Every run of every kind."""
    histories = read(kind)
    assert histories, (
        f"tests/histories has no history of {kind}: python -m tests.histories.record {kind}"
    )
    for history in histories:
        await replayer().replay_workflow(history)


async def test_a_changed_history_does_not_replay() -> None:
    """The replay can fail: without one verdict's marker the commands are others."""
    (history,) = read("simple")
    marker = events_of(history, "MARKER_RECORDED")[1]
    events = [event for event in history.events if event.event_id != marker.event_id]
    cut = WorkflowHistory(history.workflow_id, events)
    checked: Replayer = replayer()
    with pytest.raises(Exception, match=r"(?i)nondetermin|history"):
        await checked.replay_workflow(cut)


def test_each_kind_is_what_it_is_called() -> None:
    """The histories hold what their kinds are about."""
    assert len(read("continued")) > 1
    assert events_of(read("continued")[0], "WORKFLOW_EXECUTION_CONTINUED_AS_NEW")
    assert any(name.startswith("checkpoint-") for name in activities_of(read("continued")[1]))
    reset, forked = read("reset")[-1], read("fork")[-1]
    assert [name for name in activities_of(reset) if name.startswith("recorded-")]
    assert [name for name in activities_of(forked) if name.startswith("recorded-")] == [
        "recorded-1",
        "recorded-2",
    ]
    assert events_of(read("effects")[0], "WORKFLOW_EXECUTION_SIGNALED")
    assert any("effect" in name for name in activities_of(read("effects")[0]))
    assert events_of(read("batch")[0], "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    assert b"condensation" in read("condensation")[0].to_json().encode().lower()
    names = {kind: activities_of(read(kind)[0]) for kind in KINDS}
    assert any(name.startswith("summary-") for name in names["summary"])
    assert [name for name in names["asleep"] if "asleep" in name]
    assert len(events_of(read("asleep")[0], "TIMER_CANCELED")) == 1, (
        "the message did not end a wait"
    )
    assert len([name for name in names["background"] if name.startswith("payload-")]) >= 3
    assert events_of(read("cancelled")[0], "ACTIVITY_TASK_CANCEL_REQUESTED")
