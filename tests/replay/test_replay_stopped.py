"""A job that did not succeed goes on from where it stopped: behind its last statement."""

from __future__ import annotations

import asyncio

import pytest

from activities.record import RunName
from runtime.archive.forms import Capture, Step
from runtime.archive.job import JobArchive
from runtime.base.errors import InputError, NotFound
from runtime.base.spec.models import Budget
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.replay.replays import fork_job, reexecution, replayed, rerun, reset_job, turn_of
from tests.replay.timelines import replay_runs, sound
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_a_call_that_failed_is_made_again_with_another_model(stage: Stage) -> None:
    """The failed turn has no step; its history says where to reset to.

    What is before it is not called again.
    """
    first, archive = await stage.run(["n = 1", "n += 1"], id="job")
    assert (first.status, first.turns) == (JobStatus.FAILED, 2)
    with pytest.raises(InputError, match="nothing to execute again"):
        await reset_job(stage, "job", reexecution(stage, "job", first.run, 3, frozen=True))
    with pytest.raises(NotFound, match="numbered 1 to 2"):
        await reset_job(stage, "job", rerun(stage, "job", first.run, 4))
    other = {"name": stage.script(["?", "?", "finish(n)"])}
    again, _ = await replayed(stage, "job", rerun(stage, "job", first.run, 3, model=other))
    assert (again.status, again.turns, archive.end(again.run).result) == (JobStatus.SUCCEEDED, 3, 2)
    assert [step.run for step in archive.steps(again.run)] == [first.run, first.run, again.run]
    with pytest.raises(NotFound, match="numbered 1 to 3"):
        await reset_job(stage, "job", rerun(stage, "job", again.run, 4))
    source = RunName(batch=stage.batch, job="job", run=again.run)
    with pytest.raises(NotFound, match="numbered 1 to 3"):
        await fork_job(stage, source, 4, "other", rerun(stage, "job", again.run, 4))
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")
    none, _ = await stage.run([], id="none")
    with pytest.raises(NotFound, match="has no statement 2: no call of it has a reply"):
        await reset_job(stage, "none", rerun(stage, "none", none.run, 2))


async def test_what_changed_before_a_call_that_failed_is_in_the_end(stage: Stage) -> None:
    """The turn's tick has no step. A replay that ends with the record has no such tick, and nothing
    of it is compared.
    """
    (stage.workspace / "a.txt").write_text("one\ntwo\n")
    first, archive = await stage.run(["a = view('a.txt')", "a.SetPos(1)\nb = note('b')"], id="job")
    assert (first.status, first.turns) == (JobStatus.FAILED, 2)
    changed = {state["obj_id"]: state for state in archive.end(first.run).nodes}
    assert changed.keys() == {"view-1", "note-2"}
    assert (changed["view-1"]["pos"], changed["view-1"]["dirty"]) == ("1:0", False)
    again, differences = await replayed(
        stage, "job", reexecution(stage, "job", first.run, 1, frozen=True)
    )
    assert (again.turns, differences) == (2, [])


async def test_a_reply_that_comes_while_the_run_is_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn had no step at the first look, and has one at the second: it is gone back to."""
    first, archive = await stage.run(["n = 1", "finish(n)"], id="job")
    looks: list[int] = []

    def late(archive: JobArchive, run: str, turn: int) -> Step | None:
        looks.append(turn)
        return find_step(archive, run, turn) if len(looks) > 1 else None

    find_step = JobArchive.find_step
    order = rerun(stage, "job", first.run, 1, statement="finish(5)")
    with monkeypatch.context() as patched:
        patched.setattr(JobArchive, "find_step", late)
        made = await reset_job(stage, "job", order)
    outcome = await outcome_of_reset(stage.client, made)
    assert (looks[0], archive.end(outcome.run).result) == (1, 5)
    await replay_runs(stage.client, stage, "job")


async def test_a_spent_budget_is_raised(stage: Stage) -> None:
    """The turn that was not allowed is the statement to go on from; the statement before it is not
    executed twice in the record.
    """
    first, archive = await stage.run(["n = 1", "n += 1", "finish(n)"], id="job", turns=2)
    assert (first.status, first.turns) == (JobStatus.BUDGET, 2)
    more, _ = await replayed(
        stage, "job", rerun(stage, "job", first.run, 3, budget=Budget(turns=5))
    )
    assert (more.status, more.turns, archive.end(more.run).result) == (JobStatus.SUCCEEDED, 3, 2)
    edited, _ = await replayed(
        stage,
        "job",
        rerun(stage, "job", first.run, 3, budget=Budget(turns=5), statement="finish(n + 40)"),
    )
    assert archive.end(edited.run).result == 42
    assert [step.capture for step in archive.steps(edited.run)][2] is Capture.EDITED
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")


async def test_a_call_in_flight_is_broken_off(stage: Stage) -> None:
    """A running job is taken back to the very call that it waits for."""
    await stage.start(stage.spec(["n = 1", {"code": "n = 2", "delay": 60}, "finish(n)"], id="job"))
    archive = stage.archive(stage.spec(["n = 1"], id="job"))
    await turn_of(archive, 1)
    run = archive.runs()[0]
    async with asyncio.timeout(200):
        while archive.in_flight(run) is None:  # noqa: ASYNC110 an archive wakes nobody
            await asyncio.sleep(0.02)
    again, _ = await replayed(stage, "job", rerun(stage, "job", run, 2, statement="finish(n + 1)"))
    assert (again.status, archive.end(again.run).result) == (JobStatus.SUCCEEDED, 2)
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")
