"""Sub-jobs of which a record is followed."""

from __future__ import annotations

import pytest

from runtime.base.spec.models import ModelSettings, Spawn
from tests.replay.replays import follows_its_record
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
    await follows_its_record(stage, "job", outcome, 5)
