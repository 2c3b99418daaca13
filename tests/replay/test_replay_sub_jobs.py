"""Sub-jobs of which a record is followed."""

from __future__ import annotations

import pytest

from activities.record import RunName
from runtime.base.spec.models import ModelSettings, Spawn
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.replay.replays import fork_job, reexecution, replayed, rerun
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

UNTIL_IT_SHOWS_THE_END = (
    "while 'below' not in child.Refresh().text.partition('# Goal')[0]:\n    pass"
)
"""The view has the sub-job's end before the job hears of it, and is read once more when it does."""


async def test_an_end_that_a_view_showed_before_it_was_heard_of(stage: Stage) -> None:
    """The second reading brought nothing new, and the archive has none."""
    model = ModelSettings(name=stage.script(["finish('below')"]))
    replies = [
        "child = spawn('Go.')",
        UNTIL_IT_SHOWS_THE_END,
        "wait_for(child)",
        "x = 1",
        "finish(x)",
    ]
    outcome, _ = await stage.run(replies, id="job", spawn=Spawn(model=model))
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 5)

    again, differs = await replayed(
        stage, "job", reexecution(stage, "job", outcome.run, 1, frozen=True)
    )
    assert (again.status, again.turns, differs) == (JobStatus.SUCCEEDED, 5, [])
    source = RunName(batch=stage.batch, job="job", run=outcome.run)
    order = rerun(stage, "job", outcome.run, 5)
    forked = await fork_job(stage, source, 5, "fork", order)
    ended = await outcome_of_reset(stage.client, forked)
    assert (ended.status, ended.turns) == (JobStatus.SUCCEEDED, 5)
