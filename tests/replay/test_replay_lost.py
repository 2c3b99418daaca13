"""Jobs that Temporal has lost, and that go on out of the archive."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import Client

from activities.record import RunName
from runtime.archive.catalog import all_jobs
from runtime.archive.divergences import divergences
from runtime.archive.job import JobArchive
from runtime.base.spec.models import ModelSettings, Spawn
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.client.forks import go_on
from runtime.client.resets import outcome_of_reset, reset
from runtime.job.stops import JobStatus
from tests.eventually import SECONDS, eventually, forgotten, until_phase
from tests.held_store import HeldStore
from tests.replay.replays import reexecution, rerun, reset_job
from tests.timeless import segment_without_times
from tests.workflow.stage import Stage, events_of
from workflows.messages import JobOutcome, Note, batch_queue

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def _lose(client: Client, *jobs: JobKey) -> None:
    """Have Temporal know nothing more of jobs that run."""
    names = [job_workflow_id(job) for job in jobs]
    for name in names:
        await client.get_workflow_handle(name).terminate()
    await asyncio.gather(*(forgotten(client, name) for name in names))


async def test_a_sub_job_that_ends_before_its_job_goes_on_is_heard(stage: Stage) -> None:
    """It went on first, and had nobody to tell its end when that came."""
    model = ModelSettings(name=stage.script(["wait(300)", "finish('below')"]))
    replies = ["a = spawn('Below.')", "wait_for(a)", "finish(a.text)"]
    spec = stage.spec(replies, id="job", spawn=Spawn(model=model))
    await until_phase(await stage.start(spec), "asleep")

    def begun() -> list[JobKey]:
        return [key for key in all_jobs(stage.store, stage.batch) if key.job != "job"]

    await eventually(lambda: bool(begun()), "the sub-job has begun")
    [below] = begun()
    child = stage.client.get_workflow_handle(job_workflow_id(below))
    await until_phase(child, "asleep")
    await _lose(stage.client, JobKey(batch=stage.batch, job="job"), below)

    # Between the look at the ends of sub-jobs and the start of the job.
    store = HeldStore(stage.store, lambda key: key.startswith(f"{stage.batch}/job/replays/"))
    source = RunName(batch=stage.batch, job="job", run=stage.archive(spec).runs()[-1])
    # By which jobs of commands go.
    stage.queue = batch_queue(stage.batch)
    async with stage.open():
        going = asyncio.create_task(go_on(stage.client, store, source, {"job": [below]}))
        await eventually(store.reached.is_set, "the job is to be started")
        await child.signal("message", Note.of("Wake up."))
        assert (await child.result())["status"] == "succeeded"
        store.let_go.set()
        outcome = await outcome_of_reset(stage.client, await going)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    assert "below" in str(stage.archive(spec).end(outcome.run).result)
    stage.started.append(child.id)


HELD = """
from pathlib import Path

HERE = Path(__file__).parent

def respond(messages):
    turn = sum(m["role"] == "assistant" for m in messages) + 1
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{name} {{turn}}\\n")
    held = turn == {held} and not (HERE / "gate").exists()
    return {{"code": {codes!r}[turn - 1], "delay": 600 if held else 0}}
"""
"""Its call of one turn is under way until the file ``gate`` is there."""


def _held(stage: Stage, codes: list[str], turn: int, name: str = "first") -> str:
    path = stage.path / f"{name}.py"
    path.write_text(HELD.format(codes=codes, held=turn, name=name))
    return f"scripted/{path}"


def _calls(stage: Stage) -> list[str]:
    path = stage.path / "calls"
    return path.read_text().splitlines() if path.exists() else []


async def _goes_on(stage: Stage, archive: JobArchive) -> JobOutcome:
    """The end of a job that Temporal has lost, and that goes on out of the archive."""
    source = RunName(batch=stage.batch, job=archive.job.job, run=archive.runs()[-1])
    (stage.path / "gate").touch()
    # By which jobs of commands go.
    stage.queue = batch_queue(stage.batch)
    async with stage.open():
        made = await go_on(stage.client, stage.store, source, {})
        return await asyncio.wait_for(outcome_of_reset(stage.client, made), SECONDS)


def _prompt(archive: JobArchive, run: str, turn: int) -> list[dict[str, Any]]:
    return [segment_without_times(segment) for segment in archive.turn_layout(run, turn)]


@pytest.mark.parametrize("before", ["", "print(open('a.txt').read())\n"])
async def test_a_turn_that_had_begun_begins_alike(stage: Stage, before: str) -> None:
    """Its call had no reply: it is made again with the same prompt, the message in it that had
    woken the job, and what that slept is not slept again.
    """
    (stage.workspace / "a.txt").write_text("text")
    # A record that is followed takes its own messages out of those that have come, by their text.
    codes = ["wait(3000)", f"{before}wait(3000)", "finish(1)"]
    spec = stage.spec(_held(stage, codes, 3), id="job")
    handle, archive = await stage.start(spec), stage.archive(spec)
    for turn in (2, 3):
        await until_phase(handle, "asleep")
        await handle.signal("message", Note.of("Wake up."))
        await eventually(lambda turn=turn: f"first {turn}" in _calls(stage), f"turn {turn}")
    lost = archive.runs()[-1]
    await _lose(stage.client, archive.job)
    outcome = await _goes_on(stage, archive)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    assert _calls(stage) == ["first 1", "first 2", "first 3", "first 3"]
    prompt = _prompt(archive, outcome.run, 3)
    assert prompt == _prompt(archive, lost, 3)
    assert [part["text"] for part in prompt if part["kind"] == "message"] == ["Wake up."] * 2


async def test_what_was_slept_before_a_call_is_not_slept_again(stage: Stage) -> None:
    """Its prompt says how the sleep ended. By the clock alone that is not known: a statement with
    effects falls asleep when they have come.
    """
    (stage.workspace / "a.txt").write_text("text")
    spec = stage.spec(
        _held(stage, ["print(open('a.txt').read())\nwait(2)", "finish(1)"], 2), id="j"
    )
    archive = stage.archive(spec)
    await stage.start(spec)
    await eventually(lambda: "first 2" in _calls(stage), "turn 2")
    lost = archive.runs()[-1]
    await _lose(stage.client, archive.job)
    outcome = await _goes_on(stage, archive)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 2)
    assert _prompt(archive, outcome.run, 2) == _prompt(archive, lost, 2)
    history = await stage.history()
    timers = [one.timer_started_event_attributes for one in events_of(history, "TIMER_STARTED")]
    # Those of a millisecond stand for an event, and not for time.
    assert [one for one in timers if one.start_to_fire_timeout.ToMilliseconds() > 1] == []


async def test_a_replay_with_another_model_goes_on_with_that(stage: Stage) -> None:
    """It was taken back, and lost in its third turn."""
    codes = ["x = 1", "x += 1", "x += 1", "finish(x)"]
    spec = stage.spec(_held(stage, codes, 0), id="job")
    outcome = await (await stage.start(spec)).result()
    other = {"name": _held(stage, codes, 3, "other")}
    await reset_job(stage, "job", rerun(stage, "job", outcome.run, 2, model=other))
    await eventually(lambda: _calls(stage)[-1:] == ["other 3"], "turn 3")
    archive = stage.archive(spec)
    await _lose(stage.client, archive.job)
    outcome = await _goes_on(stage, archive)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 4)
    assert _calls(stage)[4:] == ["other 2", "other 3", "other 3", "other 4"]


async def test_a_frozen_replay_goes_on_as_one(stage: Stage) -> None:
    """No model is called for it, and nothing differs."""
    spec = stage.spec(_held(stage, ["x = 1", "x += 1", "x += 1", "finish(x)"], 0), id="job")
    store, archive = stage.store, stage.archive(spec)
    stage.store = HeldStore(store, lambda key: key.endswith("3.step") and len(archive.runs()) == 2)  # type: ignore[assignment]
    stage.queue = f"{stage.queue}-held"
    async with stage.open():
        outcome = await (await stage.start(spec)).result()
        order = reexecution(stage, "job", outcome.run, 1, frozen=True)
        await reset(stage.client, store, archive.job, order)
        await eventually(stage.store.reached.is_set, "turn 3 of the replay")  # type: ignore[attr-defined]
        await _lose(stage.client, archive.job)
        stage.store.let_go.set()  # type: ignore[attr-defined]
    stage.store = store
    again = await _goes_on(stage, archive)
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, 4)
    assert divergences(archive, again.run) == []
    assert _calls(stage) == [f"first {turn}" for turn in (1, 2, 3, 4)]
