"""Sleeps, periodic ticks and payloads in other runs: continued, and replayed from a record that has
the world's answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from activities.record import RunName
from runtime.archive.divergences import divergences
from runtime.archive.job import JobArchive
from runtime.base.effect_numbers import UNWRITTEN
from runtime.base.spec.models import ModelSettings
from runtime.base.workflow_ids import TASK_LIMIT
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.eventually import eventually, until_phase, until_turn
from tests.replay.replays import (
    fill_runs,
    follows_its_record,
    fork_job,
    frozen_again,
    held,
    prepared,
    rerun,
    turn_of,
)
from tests.replay.timelines import archive_of, replay_runs, sound, timeline
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

BUSY = "n = 0\nwhile n < 2_000_000:\n    n += 1"
"""Some 190 ms of processor time on a fast machine."""
FILLS_MS = 50
"""What fills a run: much less than ``BUSY`` takes on any machine, and much more than a view
does.
"""


async def _until_asleep(handle: WorkflowHandle[Any, Any]) -> None:
    await until_phase(handle, "asleep")


@pytest.fixture
def soon_full() -> Iterator[None]:
    """Runs that are full after ``FILLS_MS``, also when they are replayed after the test."""
    with pytest.MonkeyPatch.context() as patch:
        fill_runs(patch, FILLS_MS, TASK_LIMIT)
        yield


# The fixtures' order counts: what is set is undone after the stage has replayed what it did.
async def test_a_job_sleeps_on_in_its_next_run(soon_full: None, stage: Stage) -> None:
    """A run that is full when its job falls asleep hands the sleep to the next, with what is waited
    for.
    """
    path = stage.workspace / "log.txt"
    path.write_text("one\n")
    spec = stage.spec(
        ["log = view('log.txt', freq='Sync')", f"{BUSY}\nwait_for(log)", "finish(log.text)"]
    )
    handle = await stage.start(spec)
    archive = archive_of(stage, spec.id)
    await turn_of(archive, 2)
    before = archive.runs()[-1]

    async def in_another_run() -> bool:
        return (await handle.describe()).run_id != before

    await eventually(in_another_run, "the job goes on in another run")
    await _until_asleep(stage.client.get_workflow_handle(handle.id))
    path.write_text("two\n")
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    assert archive.end(outcome.run).result == "two"
    assert archive.runs()[-2:] == [before, outcome.run]
    assert archive.find_step(outcome.run, 3).interim.woken.endswith("; woken by a change of log")
    assert sound(archive)
    assert await replay_runs(stage.client, stage, spec.id) > 1


async def test_a_frozen_replay_of_a_sleep_takes_no_time(stage: Stage) -> None:
    """Readings, payloads and wakings come from the record: the same timeline, though the files are
    others by now.
    """
    path = stage.workspace / "log.txt"
    path.write_text("one\n")
    statements = [
        (
            "p = view('log.txt', freq=('Periodic', 1))\na = view('log.txt', freq='Async')\ng ="
            " group(p, a)\nwait_for(p)\nwait(1)"
        ),
        "texts = [p.text, a.text]\nwait(1)",
        "texts += [p.text, a.text]\nwait_for(p)",
        "finish([*texts, p.text, a.text, g.text])",
    ]
    model, gate = held(stage, statements, 2)
    spec = stage.spec(model)
    handle = await stage.start(spec)
    await _until_asleep(handle)
    path.write_text("two\n")
    await eventually(lambda: prepared(handle), "what the second turn begins is there")
    gate.touch()
    await until_turn(handle, 3)
    await _until_asleep(handle)
    path.write_text("three\n")
    outcome = await handle.result()
    archive = archive_of(stage, spec.id)
    before = archive.end(outcome.run).result
    assert before[:5] == ["two", "one", "two", "two", "three"]
    path.write_text("four\n")

    again, replayed = await frozen_again(stage, spec, outcome.run)
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, 4)
    assert replayed.end(again.run).result == before
    assert [step.interim for step in replayed.steps(again.run)] == [
        step.interim for step in archive.steps(outcome.run)
    ]
    assert _timeless(replayed, again.run) == _timeless(archive, outcome.run)


async def test_a_change_that_ended_a_later_wait_of_a_statement(stage: Stage) -> None:
    """The view was read for the second wait alone, and whoever follows the record reads it then."""
    path = stage.workspace / "log.txt"
    path.write_text("one\n")
    replies = [
        "v = view('log.txt', freq='Sync')",
        "wait(1)\nwait_for(v)",
        "x = v.text",
        "finish(x)",
    ]
    spec = stage.spec(replies, id="job")
    handle = await stage.start(spec)
    await until_turn(handle, 2)
    await _until_asleep(handle)
    path.write_text("two\n")
    outcome = await handle.result()
    archive = archive_of(stage, spec.id)
    assert archive.end(outcome.run).result == "two"
    [_] = archive.find_step(outcome.run, 3).interim.ticks
    path.write_text("three\n")
    await follows_its_record(stage, "job", outcome, 4)


ABOUT = """
from pathlib import Path

def respond(messages):
    calls = Path(__file__).with_suffix(".calls")
    calls.write_text((calls.read_text() if calls.exists() else "") + "call\\n")
    return f"- {messages[-1]['content'].count('def ')} functions"
"""


async def test_summaries_that_landed_in_a_sleep_land_there_again(stage: Stage) -> None:
    """A view's, then a group's, each of which ends a wait; the frozen replay asks no model and
    finds them in the record.
    """
    for name in ("a", "b"):
        (stage.workspace / f"{name}.py").write_text(f"def {name}():\n    pass\n")
    about = stage.path / "about.py"
    about.write_text(ABOUT)
    statements = [
        (
            "a = view('a.py', lod=2)\ng = group(a, view('b.py'), tokens=300)\ntexts = [a.text,"
            " g.text]\nwait_for(a)\nwait_for(g)"
        ),
        "texts += [a.text, g.text]",
        "g.SetTokens(200)\nwait_for(g)",
        "finish([*texts, g.text])",
    ]
    spec = stage.spec(statements, summary_model=ModelSettings(name=f"scripted/{about}"))
    outcome = await (await stage.start(spec)).result()
    archive = archive_of(stage, spec.id)
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result[0].startswith("0: def a()")
    assert end.result[2] == "- 1 functions"
    assert [end.result[n].splitlines()[-1] for n in (3, 4)] == ["- 1 functions"] * 2
    steps = {step.turn: step.interim for step in archive.steps(outcome.run)}
    assert [node for _, node, *_ in steps[2].asleep] == ["view-1", "group-3"]
    assert steps[2].woken.endswith("; woken by the summary of g")
    assert [node for _, node, *_ in steps[4].asleep] == ["group-3"]
    assert steps[4].woken.endswith("; woken by the summary of g")
    calls = about.with_suffix(".calls").read_text()
    assert calls == "call\n" * 3
    (stage.workspace / "b.py").unlink()

    again, replayed = await frozen_again(stage, spec, outcome.run)
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, 4)
    assert about.with_suffix(".calls").read_text() == calls
    assert [step.interim for step in replayed.steps(again.run)] == [
        step.interim for step in archive.steps(outcome.run)
    ]
    assert _timeless(replayed, again.run) == _timeless(archive, outcome.run)
    assert divergences(replayed, again.run) == []
    assert sound(archive) and sound(replayed)


def _timeless(archive: JobArchive, run: str) -> list[dict[str, Any]]:
    """The run's turns without their events: those of payloads say when each was prepared, and in
    which order.
    """
    return [{**turn, "events": None} for turn in timeline(archive, run)]


FAILING = """
def respond(messages):
    return {"fail": {"status": 400, "message": "No."}, "times": 99}
"""

PATIENT = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    if turn == 1:
        return {"code": "a = view('a.py', lod=2)\\ng = group(view('b.py'), tokens=300)\\nwait(SECONDS)"}
    told = " ".join(str(message.get("content")) for message in messages).count("standing in since its summary failed")
    return {"code": f"finish({told})" if told >= 2 else "wait(1)"}
"""


@pytest.mark.parametrize("seconds", [0, 1], ids=["awake", "asleep"])
async def test_a_summary_that_failed_is_told_where_it_was_told(stage: Stage, seconds: int) -> None:
    """A view and a group say in the prompt that theirs failed; the frozen replay and a fork ask no
    model and say the same.
    """
    for name in ("a", "b"):
        (stage.workspace / f"{name}.py").write_text(f"def {name}():\n    pass\n")
    failing, agent = stage.path / "failing.py", stage.path / "agent.py"
    failing.write_text(FAILING)
    agent.write_text(PATIENT.replace("wait(SECONDS)", f"wait({seconds})" if seconds else ""))
    spec = stage.spec(f"scripted/{agent}", summary_model=ModelSettings(name=f"scripted/{failing}"))
    outcome = await (await stage.start(spec)).result()
    archive = archive_of(stage, spec.id)
    assert outcome.status is JobStatus.SUCCEEDED
    told = [
        one
        for step in archive.steps(outcome.run)
        for one in (*step.interim.payloads, *step.interim.asleep)
    ]
    assert sorted((node, effect) for *_, node, _, effect in told) == [
        ("group-3", UNWRITTEN),
        ("view-1", UNWRITTEN),
    ]

    failing.unlink()
    again, replayed = await frozen_again(stage, spec, outcome.run)
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, outcome.turns)
    assert _timeless(replayed, again.run) == _timeless(archive, outcome.run)
    assert divergences(replayed, again.run) == []
    source = RunName(batch=stage.batch, job=spec.id, run=outcome.run)
    order = rerun(stage, spec.id, outcome.run, outcome.turns)
    forked = await outcome_of_reset(
        stage.client, await fork_job(stage, source, outcome.turns, "fork", order)
    )
    assert forked.status is JobStatus.SUCCEEDED
    there, here = (
        timeline(archive_of(stage, job), run)
        for job, run in (("fork", forked.run), (spec.id, outcome.run))
    )
    assert [_untimed(turn) for turn in there] == [_untimed(turn) for turn in here]
    assert sound(archive) and sound(replayed) and sound(archive_of(stage, "fork"))


def _untimed(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """A turn's prompt without what tells time, which is a fork's own: budgets, and how long a sleep
    took.
    """
    return [
        {**segment, "text": _SLEPT.sub("slept;", segment["text"])}
        for segment in turn["prompt"]
        if segment["kind"] != "budget"
    ]


_SLEPT = re.compile(r"slept \S+ s;")
