"""Back to each statement of a job by a reset: nothing before it is touched, and what differs is
named.
"""

from __future__ import annotations

import asyncio

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.forms import Capture
from runtime.base.spec.models import Budget
from runtime.job.divergence import Aspect
from runtime.job.stops import JobStatus
from runtime.server.binary import installed_binary
from tests.replay.replays import reexecution, replayed
from tests.replay.timelines import archive_of, came_to, replay_runs, sound, timeline
from tests.workflow.stage import Stage, activities_of, events_of

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
"""The same moves in a job of sixty turns."""

APART = [
    "n = 0\na = view('a.py', tokens=100)",
    *(
        [
            "import random\nr = random.random()\nprint(r)",
            "text = open('data.txt').read()\nprint(text)",
            "a.SetPos(str(n))",
            "n += 1\nprint(n)",
            "from pathlib import Path\nprint(len(Path('data.txt').read_text()))",
            "print(1 // 0)",
            "log = view('log.md').Run(freq='Sync')\nprint(open('log.md').read())",
        ][turn % 7]
        for turn in range(58)
    ),
    "finish(n)",
]
"""Sixty statements of which none works on what another made of ``data.txt``."""


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


async def _recorded(stage: Stage, statements: list[str] = STATEMENTS) -> str:
    (stage.workspace / "a.py").write_text(
        "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    )
    (stage.workspace / "log.md").write_text("# Log\n\nfirst\n")
    (stage.workspace / "data.txt").write_text("data\n")
    outcome, _ = await stage.run(statements, id="job", turns=100)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, len(statements))
    return outcome.run


async def test_frozen_from_each_statement_there_is_no_divergence(stage: Stage) -> None:
    """What is before N is the same steps, no model is called, and executions come to the same.

    From the first and each fifteenth after it all of the record is executed, from the others N and
    one more, until a budget ends the replay.
    """
    run = await _recorded(stage, SIXTY)
    archive = archive_of(stage, "job")
    before, old = timeline(archive, run), list(archive.steps(run))
    for start in range(1, 61):
        last = 60 if start % 15 == 1 else min(start + 1, 60)
        order = reexecution(
            stage, "job", run, start, frozen=True, budget=Budget(turns=last if last < 60 else 100)
        )
        outcome, found = await replayed(stage, "job", order)
        assert [one.line() for one in found] == [], start
        status = JobStatus.SUCCEEDED if last == 60 else JobStatus.BUDGET
        assert (outcome.status, outcome.turns) == (status, last), start
        steps = list(archive.steps(outcome.run))
        assert [step.ref for step in steps[: start - 1]] == [step.ref for step in old[: start - 1]]
        assert [step.capture for step in steps[start - 1 :]] == [Capture.REPLAYED] * (
            last - start + 1
        )
        assert steps[start - 1].run not in {step.run for step in old}
        assert steps[start - 1].parent == (old[start - 2].ref if start > 1 else None)
        assert [came_to(step) for step in steps] == [came_to(step) for step in old[:last]]
    assert {event["type"] for turn in before for event in turn["events"]} >= {
        "method_called",
        "node_changed",
    }
    assert sound(archive)
    assert timeline(archive, run) == before
    assert await replay_runs(stage.client, stage, "job", every=10) >= 61


async def test_exactly_the_readers_of_a_changed_file_diverge(stage: Stage) -> None:
    """Of sixty statements those from N on that read it, and no other; each is named with what it
    read.
    """
    run = await _recorded(stage, APART)
    (stage.workspace / "data.txt").write_text("other data\n")
    readers = {turn for turn, statement in enumerate(APART, 1) if "data.txt" in statement}
    assert len(readers) == 17
    for start in (1, 31, 60):
        _, found = await replayed(stage, "job", reexecution(stage, "job", run, start))
        assert {one.turn for one in found} == {turn for turn in readers if turn >= start}
        first = {one.turn: one for one in reversed(found)}
        assert {(one.aspect, one.subject.split(" ")[-1]) for one in first.values()} <= {
            (Aspect.EFFECT_RESULT, "data.txt")
        }
    assert sound(archive_of(stage, "job"))


async def test_the_statements_that_read_a_changed_file_diverge(stage: Stage) -> None:
    """Those from N on, each with its cause first, and those that work on what they made of it."""
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
    """A reset that nobody ordered through Holdfast has no order: the model is asked anew from
    there.
    """
    run = await _recorded(stage)
    archive = archive_of(stage, "job")
    step = archive.find_step(run, 6)
    process = await asyncio.create_subprocess_exec(
        *(
            str(installed_binary()),
            "workflow",
            "reset",
            "--workflow-id",
            stage.started[0],
            "--run-id",
            run,
        ),
        *(
            "--event-id",
            str(step.reset_event_id),
            "--reason",
            "by hand",
            "--address",
            stage.address,
        ),
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


async def test_a_statement_that_printed_too_much_is_not_run_again(stage: Stage) -> None:
    """It ran on until its time was over, and in a replay nobody measures that."""
    endless = "print('z' * 2_000_000)\nwhile True:\n    pass"
    outcome, _ = await stage.run([endless, "finish(1)"], id="job")
    again, differs = await replayed(
        stage, "job", reexecution(stage, "job", outcome.run, 1, frozen=True)
    )
    assert (again.status, again.turns, differs) == (JobStatus.SUCCEEDED, 2, [])
    failed = events_of(await stage.history(), "WORKFLOW_TASK_FAILED")
    # A reset is told as one.
    told = [event.workflow_task_failed_event_attributes.failure.message for event in failed]
    assert [one for one in told if "interpreter" in one] == []
