"""A job that was asked how it goes while it ran is taken back as ordered, to any of its
statements.

A query makes the server cut a workflow task in two, of which the second has nothing new in it; a
reset to that one was heard of too late, and what was ordered for its turn was lost.
"""

from __future__ import annotations

import asyncio

import pytest

from runtime.client.resets import before_verdicts
from tests.eventually import progress_of
from tests.replay.replays import replayed, rerun
from tests.replay.timelines import archive_of, replay_runs
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 16
JOB = [*(f"n = {n}" for n in range(1, TURNS)), "finish(n)"]
ASKING, TAKEN_BACK = 4, 3
MOST_JOBS = 5
"""Until a query cuts a task of one: it may come between two tasks each time."""


async def test_a_job_that_was_asked_is_taken_back_as_ordered(stage: Stage) -> None:
    """The edited statement takes its turn's place where its task had been cut, and elsewhere."""
    for number in range(MOST_JOBS):
        job = f"job-{number}"
        run, cut = await _asked(stage, job)
        if cut:
            break
    assert cut, "no workflow task of any job was cut by a query"
    archive = archive_of(stage, job)
    whole = [turn for turn in range(2, TURNS) if turn not in cut]
    for turn in (*cut[:TAKEN_BACK], *whole[:1]):
        order = rerun(stage, job, run, turn, statement="n = 1000\nfinish(n)")
        outcome, _ = await replayed(stage, job, order)
        assert (outcome.turns, archive.end(outcome.run).result) == (turn, 1000), turn
        assert [step.run for step in archive.steps(outcome.run)][: turn - 1] == [run] * (turn - 1)
    await replay_runs(stage.client, stage, job)


async def _asked(stage: Stage, job: str) -> tuple[str, list[int]]:
    """A job that was asked all the time: its run, and the turns whose call was ordered in a task
    that a query had cut off.
    """
    handle = await stage.start(stage.spec(JOB, id=job))
    asking = [asyncio.create_task(_ask(stage, job)) for _ in range(ASKING)]
    outcome = await handle.result()
    await asyncio.gather(*asking)
    history = await handle.fetch_history()
    points = {step.turn: step.reset_event_id for step in archive_of(stage, job).steps(outcome.run)}
    return outcome.run, [
        turn for turn, event in points.items() if before_verdicts(history.events, event) != event
    ]


async def _ask(stage: Stage, job: str) -> None:
    """Ask the job how it goes, again and again, until it has ended."""
    handle, archive = stage.client.get_workflow_handle(stage.started[-1]), archive_of(stage, job)
    while not any(archive.end(run) for run in archive.runs()):
        await progress_of(handle)
