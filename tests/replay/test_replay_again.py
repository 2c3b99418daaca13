"""Replays of replays, and of turns that took more than one call: the order holds from statement N
on, and no earlier one.
"""

from __future__ import annotations

import pytest

from activities.record import RunName
from runtime.archive.forgetting import forgettings
from runtime.archive.forms import Capture
from runtime.archive.job import JobArchive
from runtime.base.spec.models import CondenserSpec
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.replay.replays import fork_job, reexecution, replayed, rerun
from tests.replay.timelines import replay_runs, sound, timeline
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

STATEMENTS = ["n = 1", "text = open('data.txt').read()\nprint(text)", "n += len(text)", "finish(n)"]

POLICY = """
import re


def respond(messages):
    if messages[0]["content"].startswith("Write a summary"):
        return "Summed up."
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    return {"code": "finish(turn)" if turn == 14 else f"turn = {turn}\\nprint('turn {turn} ran')"}
"""


def _nodes_and_replies(archive: JobArchive, run: str) -> list[tuple[object, ...]]:
    return [(turn["reply"], turn["nodes_digest"]) for turn in timeline(archive, run)]


async def test_a_replay_of_a_replay_follows_that_one(stage: Stage) -> None:
    """Back to the very statement where the first began: it is the new order that holds there, for
    effects and replies.
    """
    data = stage.workspace / "data.txt"
    data.write_text("data\n")
    first, archive = await stage.run(STATEMENTS, id="job")
    data.write_text("other data\n")
    second, found = await replayed(stage, "job", reexecution(stage, "job", first.run, 2))
    assert {one.turn for one in found} == {2, 3, 4}
    data.write_text("more other data\n")
    for start in (2, 3, 1):
        third, found = await replayed(
            stage, "job", reexecution(stage, "job", second.run, start, frozen=True)
        )
        assert [one.line() for one in found] == []
        assert archive.end(third.run).result == archive.end(second.run).result == 12
        assert _nodes_and_replies(archive, third.run) == _nodes_and_replies(archive, second.run)
        assert third.usage == first.usage, "a replay books what the model was asked for at first"
    edited, _ = await replayed(
        stage, "job", rerun(stage, "job", second.run, 2, statement="text = ''", message="shorter")
    )
    assert archive.end(edited.run).result == 1
    assert [step.capture for step in archive.steps(edited.run)][1:] == [
        Capture.EDITED,
        Capture.HANDED_OVER,
        Capture.HANDED_OVER,
    ]
    again, found = await replayed(
        stage, "job", reexecution(stage, "job", edited.run, 2, frozen=True)
    )
    assert ([one.line() for one in found], archive.end(again.run).result) == ([], 1)
    shown = [
        segment.text for segment in archive.turn_layout(again.run, 2) if segment.kind == "message"
    ]
    assert shown == ["shorter"]
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")


async def test_a_turn_without_a_statement_that_diverged_is_followed(stage: Stage) -> None:
    """What the replay told of it is no execution: frozen nothing differs, and a fork restores
    it.
    """
    data = stage.workspace / "data.txt"
    data.write_text("data\n")
    replies = ["v = view('data.txt').Run()", {"text": "Let me think."}, "x = 1", "finish(x)"]
    first, archive = await stage.run(replies, id="job")
    data.write_text("other data\n")
    second, differs = await replayed(stage, "job", reexecution(stage, "job", first.run, 2))
    assert {one.turn for one in differs} == {2}
    again, differs = await replayed(
        stage, "job", reexecution(stage, "job", second.run, 1, frozen=True)
    )
    assert ([one.line() for one in differs], archive.end(again.run).result) == ([], 1)
    source = RunName(batch=stage.batch, job="job", run=second.run)
    forked = await fork_job(stage, source, 4, "fork", rerun(stage, "job", second.run, 4))
    ended = await outcome_of_reset(stage.client, forked)
    assert (ended.status, ended.turns) == (JobStatus.SUCCEEDED, 4)


async def test_a_turn_with_a_summary_is_gone_back_to(stage: Stage) -> None:
    """The reset point is behind the summary's call: from there the order holds, and the summary is
    not written again.
    """
    path = stage.path / "policy.py"
    path.write_text(POLICY)
    condenser = (CondenserSpec(kind="summary", max_size=12),)
    outcome, archive = await stage.run(f"scripted/{path}", id="job", condenser=condenser)
    told = list(forgettings(archive, outcome.run))
    assert told[0].condensation.summary is not None
    turn = told[0].turn
    frozen, found = await replayed(
        stage, "job", reexecution(stage, "job", outcome.run, turn, frozen=True)
    )
    assert [one.line() for one in found] == []
    assert {step.capture for step in list(archive.steps(frozen.run))[turn - 1 :]} == {
        Capture.REPLAYED
    }
    again = list(forgettings(archive, frozen.run))
    assert [one.condensation.forgotten for one in again] == [
        one.condensation.forgotten for one in told
    ]
    assert again[0].condensation.summary == told[0].condensation.summary
    whole, found = await replayed(
        stage, "job", reexecution(stage, "job", frozen.run, 2, frozen=True)
    )
    assert [one.line() for one in found] == []
    # Summaries of the replayed replay are found beside the run that wrote them.
    assert [one.condensation for one in forgettings(archive, whole.run)] == [
        one.condensation for one in told
    ]
    assert whole.usage == frozen.usage == outcome.usage
    edited, _ = await replayed(
        stage, "job", rerun(stage, "job", outcome.run, turn, statement="finish('edited')")
    )
    assert (edited.status, archive.end(edited.run).result) == (JobStatus.SUCCEEDED, "edited")
    assert archive.find_step(edited.run, turn).capture is Capture.EDITED
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")
