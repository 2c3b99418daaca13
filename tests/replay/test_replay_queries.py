"""A job that was asked how it goes while it ran is taken back as ordered, to any of its
statements.

A query makes the server cut a workflow task in two, of which the second has nothing new in it; a
reset to that one was heard of too late, and what was ordered for its turn was lost.
"""

from __future__ import annotations

import asyncio

import pytest

from runtime.archive.job import JobArchive
from runtime.client.resets import before_verdicts
from tests.replay.replays import replayed, rerun
from tests.replay.timelines import archive_of, replay_runs
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 16
JOB = [*(f"n = {n}" for n in range(1, TURNS)), "finish(n)"]
ASKING, TAKEN_BACK = 4, 3


async def test_a_job_that_was_asked_is_taken_back_as_ordered(stage: Stage) -> None:
    """The edited statement takes its turn's place where its task had been cut, and elsewhere."""
    spec = stage.spec(JOB, id="job")
    handle = await stage.start(spec)
    asking = [asyncio.create_task(_ask(stage)) for _ in range(ASKING)]
    first = await handle.result()
    await asyncio.gather(*asking)
    archive = archive_of(stage, "job")
    cut = await _cut(stage, archive, first.run)
    whole = [turn for turn in range(2, TURNS) if turn not in cut]
    assert cut, "no workflow task of the job was cut by a query"
    for turn in (*cut[:TAKEN_BACK], *whole[:1]):
        order = rerun(stage, "job", first.run, turn, statement="n = 1000\nfinish(n)")
        outcome, _ = await replayed(stage, "job", order)
        assert (outcome.turns, archive.end(outcome.run).result) == (turn, 1000), turn
        assert [step.run for step in archive.steps(outcome.run)][: turn - 1] == [first.run] * (
            turn - 1
        )
    await replay_runs(stage.client, stage, "job")


async def _ask(stage: Stage) -> None:
    """Ask the job how it goes, again and again, until it has ended."""
    handle, archive = stage.client.get_workflow_handle(stage.started[0]), archive_of(stage, "job")
    while not any(archive.end(run) for run in archive.runs()):
        await handle.query("progress")


async def _cut(stage: Stage, archive: JobArchive, run: str) -> list[int]:
    """The turns whose call was ordered in a task that a query had cut off."""
    history = await stage.client.get_workflow_handle(stage.started[0], run_id=run).fetch_history()
    points = {step.turn: step.reset_event_id for step in archive.steps(run)}
    return [
        turn for turn, event in points.items() if before_verdicts(history.events, event) != event
    ]
