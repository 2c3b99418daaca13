"""Jobs that go on in another run: at a checkpoint, with nothing lost, as one timeline."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.checkpoints import checkpoint_before
from runtime.archive.recorded import user_messages
from runtime.job.stops import JobStatus
from tests.eventually import SECONDS, eventually, progress_of
from tests.held_store import HeldStore
from tests.kill.oracle import differences
from tests.replay.replays import BUSY
from tests.replay.timelines import archive_of, replay_runs, sound, timeline
from tests.workflow.stage import Stage
from workflows import continuing
from workflows.messages import Note, Origin

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

START = (
    "turn = 1\na = view('a.py', tokens=200)\nlog = view('log.md').Run(freq='Sync')\ng = group(a,"
    " log, tokens=100)"
)


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


def _job(turns: int) -> list[str]:
    moves = [
        "a.SetPos(str(turn))",
        "print(open('a.py').read()[:30])",
        "import random\nr = random.random()\nprint(r)",
    ]
    return [START, *(f"{BUSY}\n{moves[n % 3]}" for n in range(turns)), "finish({'turn': turn})"]


def _lay_out(stage: Stage) -> None:
    (stage.workspace / "a.py").write_text(
        "".join(f"def f{n}():\n    return {n}\n\n" for n in range(40))
    )
    (stage.workspace / "log.md").write_text("# One\n\nfirst\n")


async def test_a_job_in_many_runs_is_the_job_in_one(stage: Stage) -> None:
    """Prompts, replies, executions, nodes and the result are the same, and no model call is made
    twice.
    """
    _lay_out(stage)
    replies = _job(20)
    one, many = (stage.spec(replies, id="one"), stage.spec(replies, id="many"))
    same_random_numbers = Origin(seed=f"{stage.batch}/one")
    handles = [
        await stage.start(one),
        await stage.start(many, timedelta(seconds=2), same_random_numbers),
    ]
    whole, parts = await asyncio.gather(*(handle.result() for handle in handles))
    assert (whole.status, parts.status) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED)
    first, second = archive_of(stage, "one"), archive_of(stage, "many")
    assert len(second.runs()) >= 2
    assert differences(timeline(second, parts.run), timeline(first, whole.run)) == []
    assert [step.turn for step in second.steps(parts.run)] == list(range(1, 23))
    assert second.end(parts.run).result == first.end(whole.run).result == {"turn": 21}
    assert sound(second)
    await replay_runs(stage.client, stage, "many")


async def test_a_server_that_asks_for_it_gets_short_histories(stage: Stage) -> None:
    """A run goes on in another on Temporal's suggestion, some 200 events after it began."""
    outcome, archive = await stage.run(["x = 0", *(["x += 1"] * 80), "finish(x)"], turns=100)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 82)
    assert archive.end(outcome.run).result == 80
    assert len(archive.runs()) == 3
    assert sound(archive)
    for run in archive.runs():
        history = await stage.client.get_workflow_handle(
            stage.started[0], run_id=run
        ).fetch_history()
        assert len(history.events) < 230
    checkpoint = checkpoint_before(archive, outcome.run, 82)
    assert checkpoint is not None
    assert (checkpoint.turn, checkpoint.state["variables"]["x"]["repr"]) == (64, "63")
    assert await replay_runs(stage.client, stage, "job-1") == 3


async def test_a_run_that_begins_tells_where_its_job_stands(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """Also before it has loaded it: turns and tokens do not begin anew."""
    stage = Stage(temporal.client, tmp_path, "begins")
    held = HeldStore(stage.store, lambda key: key.endswith(".checkpoint"), reading=True)
    stage.store = held
    spec = stage.spec(["turn = 1", *([BUSY] * 20), "finish(turn)"])
    told: dict[str, Any] = {}

    async def answered() -> bool:
        told.update(await progress_of(stage.client.get_workflow_handle(handle.id)) or {})
        return bool(told)

    async with stage.open():
        handle = await stage.start(spec, timedelta(seconds=2))
        try:
            assert await asyncio.to_thread(held.reached.wait, SECONDS)
            await eventually(answered, "the new run answers")
        finally:
            held.let_go.set()
        outcome = await handle.result()
    archive = archive_of(stage, spec.id)
    steps = [step for step in archive.steps(outcome.run) if step.run == archive.runs()[0]]
    assert (told["turn"], told["statement"]) == (len(steps), "n = 0")
    assert told["usage"]["prompt"] == sum(step.usage.prompt for step in steps)


async def test_messages_are_read_before_they_are_forgotten(
    # First, so that histories are replayed with the same figure.
    monkeypatch: pytest.MonkeyPatch,
    stage: Stage,
) -> None:
    """More than a prompt holds, and than the order of another run, wait for later turns, of which
    each has a few.
    """
    monkeypatch.setattr(continuing, "CARRIED_BYTES", 200_000)
    sent = [f"message {number} " + "word " * 900 for number in range(120)]
    origin = Origin(seed="any", inbox=tuple(sent))
    spec = stage.spec(["x = 0", *(["x += 1"] * 60), "finish(x)"], turns=100, context_tokens=8_000)
    handle = await stage.start(spec, origin=origin)
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    archive = archive_of(stage, spec.id)
    first, *later = archive.runs()
    assert later, "it has gone on in another run"
    heard = [user_messages(archive, outcome.run, turn + 1) for turn in range(outcome.turns)]
    assert [text for texts in heard for text in texts] == sent
    assert max(map(len, heard)) == 2
    at_its_end = max(step.turn for step in archive.steps(first))
    read = sum(map(len, heard[:at_its_end]))
    assert continuing.fit_an_order(sent[read:])
    assert sound(archive)
    await replay_runs(stage.client, stage, spec.id)


async def test_messages_reach_the_next_run(stage: Stage) -> None:
    """Messages that arrive all the time are all read, in order, once, in however many runs."""
    _lay_out(stage)
    spec = stage.spec(_job(16))
    handle = await stage.start(spec, timedelta(seconds=2))
    sent = []
    waiting = asyncio.create_task(handle.result())
    workflow_id = handle.id
    while not waiting.done() and len(sent) < 300:
        text = f"message {len(sent)}"
        try:
            await stage.client.get_workflow_handle(workflow_id).signal("message", Note.of(text))
        except Exception:  # noqa: BLE001 the job has ended between the two calls
            break
        sent.append(text)
        await asyncio.sleep(0.01)
    outcome = await waiting
    archive = archive_of(stage, spec.id)
    assert len(archive.runs()) > 1
    shown = [s.text for s in archive.turn_layout(outcome.run, outcome.turns) if s.kind == "message"]
    assert shown == sent[: len(shown)]
    assert len(shown) > len(sent) // 2
