"""Back to each statement of a job by a reset: nothing before it is touched, and what differs is named."""

from __future__ import annotations

import asyncio

import pytest

from runtime.archive.records import Capture
from runtime.job.divergence import Aspect
from runtime.job.stops import JobStatus
from runtime.temporal_binary import installed_binary
from tests.replay.replays import reexecution, replayed
from tests.replay.timelines import archive_of, replay_runs, sound, timeline
from tests.workflow.stage import Stage, activities_of

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

READS = (3, 7, 11)
"""Statements that read ``data.txt``."""

STATEMENTS = [
    "n = 0\na = view('a.py', tokens=100)",
    "import random\nr = random.random()\nprint(r)",
    "text = open('data.txt').read()\nprint(text)",
    "log = view('log.md').Run(freq='Sync')\ng = group(a, log, tokens=100)",
    "import datetime\nnow = str(datetime.datetime.now())\nprint(now)",
    "a.SetPos('2')\nn += 1",
    "n = len(open('data.txt').read())",
    "print(1 // 0)",
    "this is no statement",
    "print(ls())\nn += n",
    "from pathlib import Path\nprint([Path('data.txt').read_text(), n])",
    "finish({'n': n})",
]

SIXTY = [*STATEMENTS[:-1], *(STATEMENTS[1 + n % 10] for n in range(48)), STATEMENTS[-1]]
"""The same, for an hour's job: some 1,900 turns in all."""


async def _recorded(stage: Stage, statements: list[str] = STATEMENTS) -> str:
    (stage.workspace / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (stage.workspace / "log.md").write_text("# Log\n\nfirst\n")
    (stage.workspace / "data.txt").write_text("data\n")
    outcome, _ = await stage.run(statements, id="job", turns=100)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, len(statements))
    return outcome.run


@pytest.mark.parametrize("statements", [STATEMENTS, pytest.param(SIXTY, marks=pytest.mark.exhaustive)])
async def test_frozen_from_each_statement_there_is_no_divergence(stage: Stage, statements: list[str]) -> None:
    """What is before N is the same steps, no model is called, and executions come to the same."""
    run = await _recorded(stage, statements)
    archive = archive_of(stage, "job")
    before = timeline(archive, run)
    for start in range(1, len(statements) + 1):
        outcome, found = await replayed(stage, "job", reexecution(stage, "job", run, start, frozen=True))
        assert [one.line() for one in found] == [], start
        assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, len(statements)), start
        steps, old = list(archive.steps(outcome.run)), list(archive.steps(run))
        assert [step.ref for step in steps[: start - 1]] == [step.ref for step in old[: start - 1]]
        assert [step.capture for step in steps[start - 1 :]] == [Capture.REPLAYED] * (len(statements) - start + 1)
        assert steps[start - 1].run not in {step.run for step in old}
        assert steps[start - 1].parent == (old[start - 2].ref if start > 1 else None)
        now = timeline(archive, outcome.run)
        assert [turn["execution"] for turn in now] == [turn["execution"] for turn in before]
        assert [turn["nodes_digest"] for turn in now] == [turn["nodes_digest"] for turn in before]
    assert sound(archive)
    assert timeline(archive, run) == before
    assert await replay_runs(stage.client, stage, "job") >= len(statements) + 1


async def test_the_statements_that_read_a_changed_file_diverge(stage: Stage) -> None:
    """With one file changed, exactly those from N on that read it are named, each with its cause first."""
    run = await _recorded(stage)
    (stage.workspace / "data.txt").write_text("other data\n")
    for start in (1, 5, 12):
        _, found = await replayed(stage, "job", reexecution(stage, "job", run, start))
        # What depends on the clock differs by design: only a frozen replay has the recorded time.
        clock = [one for one in found if one.turn == 5]
        assert all(one.aspect in {Aspect.STDOUT, Aspect.NAMESPACE} for one in clock)
        others = [one for one in found if one.turn != 5]
        # Statements 10, 11 and 12 print, or finish with, what statement 7 made of the file.
        told = [turn for turn in READS if turn >= start] + ([10, 12] if start <= 7 else [])
        assert sorted({one.turn for one in others}) == sorted(set(told)), start
        for turn in {one.turn for one in others} & set(READS):
            first = next(one for one in others if one.turn == turn)
            assert (first.aspect, "data.txt" in first.subject) == (Aspect.EFFECT_RESULT, True)
    assert sound(archive_of(stage, "job"))


async def test_a_reset_by_temporal_alone_goes_on_as_a_rerun(stage: Stage) -> None:
    """A reset that nobody ordered through Holdfast has no order: the model is asked anew from there."""
    run = await _recorded(stage)
    archive = archive_of(stage, "job")
    step = archive.find_step(run, 6)
    process = await asyncio.create_subprocess_exec(
        *(str(installed_binary()), "workflow", "reset", "--workflow-id", stage.started[0], "--run-id", run),
        *("--event-id", str(step.reset_event_id), "--reason", "by hand", "--address", stage.address),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    outcome = await stage.client.get_workflow_handle(stage.started[0]).result()
    assert (outcome["status"], outcome["turns"]) == (JobStatus.SUCCEEDED, len(STATEMENTS))
    new = list(archive.steps(outcome["run"]))
    assert [step.run for step in new] == [run] * 5 + [outcome["run"]] * 7
    assert {step.capture for step in new[5:]} == {archive.find_step(run, 1).capture}
    assert "turn-6" in activities_of(await stage.history())
    assert sound(archive)
