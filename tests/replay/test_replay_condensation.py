"""What was forgotten stays forgotten: in the next run of a job that continues as new, and after a
reset.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from runtime.archive.forgetting import forgettings
from runtime.archive.job import JobArchive
from runtime.base.spec.models import CondenserSpec
from runtime.job.stops import JobStatus
from tests.replay.replays import fill_runs
from tests.replay.timelines import archive_of, replay_runs, sound, timeline
from tests.reset_by_hand import reset_by_hand
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

LIMIT = timedelta(seconds=10)
"""Of a workflow task."""
FILLS_MS = 100
"""What fills a run: a few turns on any machine, so that summaries are of several runs."""

CONDENSER = (CondenserSpec(kind="summary", max_size=12),)
TURNS = 20
POLICY = f"""
import re

BUSY = "n = 0\\nwhile n < 450_000:\\n    n += 1\\n"


def respond(messages):
    if messages[0]["content"].startswith("Write a summary"):
        return "Summed up: " + ", ".join(re.findall(r"turn (\\d+) ran", str(messages)))
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    if turn == {TURNS}:
        return {{"code": "finish(sum(seen))"}}
    start = "seen = []\\n" if turn == 1 else ""
    return {{"code": f"{{start}}{{BUSY}}seen.append({{turn}})\\nprint('turn {{turn}} ran')"}}
"""


def _policy(stage: Stage) -> str:
    path = stage.path / "policy.py"
    path.write_text(POLICY)
    return f"scripted/{path}"


def _forgotten(archive: JobArchive, run: str) -> list[dict[str, Any]]:
    """The condensations of a run, without the address of the summary."""
    return [
        told.condensation.model_dump(mode="json", exclude={"summary"})
        for told in forgettings(archive, run)
    ]


async def test_condensations_are_the_same_in_many_runs(
    # First, so that histories are replayed with the same figure.
    monkeypatch: pytest.MonkeyPatch,
    stage: Stage,
) -> None:
    """The next run has the View and its summaries, condenses at the same turns, and shows the same
    prompts.
    """
    fill_runs(monkeypatch, FILLS_MS, LIMIT)
    model = _policy(stage)
    one, many = (stage.spec(model, id=name, condenser=CONDENSER) for name in ("one", "many"))
    # The one's run is filled by sixty times as much.
    handles = [await stage.start(one, 60 * LIMIT), await stage.start(many, LIMIT)]
    whole, parts = await asyncio.gather(*(handle.result() for handle in handles))
    assert (whole.status, parts.status) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED)
    first, second = archive_of(stage, "one"), archive_of(stage, "many")
    assert len(second.runs()) > 1
    assert timeline(second, parts.run) == timeline(first, whole.run)
    assert _forgotten(second, parts.run) == _forgotten(first, whole.run)
    told = list(forgettings(second, parts.run))
    assert len(told) >= 3
    assert all(one.turns[0] == 1 for one in told), "each summary takes in the one before"
    assert (
        len(
            {
                second.step(one.condensation.summary).run.partition("~")[0]
                for one in told
                if one.condensation.summary
            }
        )
        > 1
    )
    assert sound(second)
    await replay_runs(stage.client, stage, "many")


async def test_a_reset_keeps_what_was_forgotten_before_it(stage: Stage) -> None:
    """A plain reset to a turn behind a condensation: its summary is not written again, and the end
    is the same.
    """
    outcome, archive = await stage.run(_policy(stage), condenser=CONDENSER)
    before = _forgotten(archive, outcome.run)
    told = list(forgettings(archive, outcome.run))
    turn = told[1].turn - 1
    assert told[0].turn < turn
    step = archive.find_step(outcome.run, turn)
    assert step is not None
    run = await reset_by_hand(stage.client, stage.started[0], step.reset_event_id)
    again = await stage.client.get_workflow_handle(stage.started[0], run_id=run).result()
    assert again["status"] == JobStatus.SUCCEEDED
    assert archive.end(run).result == archive.end(outcome.run).result == sum(range(1, TURNS))
    assert _forgotten(archive, run) == before
    assert timeline(archive, run) == timeline(archive, outcome.run)
    written = [one.condensation.summary for one in forgettings(archive, run)]
    assert written[0] == told[0].condensation.summary, (
        "what stood before the reset is the same step"
    )
    assert written[1] != told[1].condensation.summary
    assert sound(archive)
    await replay_runs(stage.client, stage, "job-1")
