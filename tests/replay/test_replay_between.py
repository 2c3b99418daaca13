"""What a job reads in runs that make no call, or before the first call of a run that goes on: it is
in the record of every timeline that comes through there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from runtime.archive.job import JobArchive
from runtime.client.resets import outcome_of_reset
from runtime.job import sleeping
from runtime.job.stops import JobStatus
from tests.eventually import eventually, until_phase
from tests.replay.replays import follows_its_record, rerun, reset_job, turn_of
from tests.replay.timelines import archive_of, sound
from tests.workflow.stage import Stage
from workflows import continuing
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

FILLS = "for i in range(10):\n    open('log.txt').read()\n"
"""What fills a run on a server that is soon asked for the next."""


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


@pytest.fixture
def short() -> Iterator[None]:
    """Runs that are full when the server suggests it, and sleeps that look often; also when they
    are replayed after the test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuing, "LEAST_EVENTS", 0)
        patch.setattr(sleeping, "LEAST_SECONDS", 0.1)
        yield


async def _in_another_run(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until the job is in another run than now."""
    now = (await handle.describe()).run_id

    async def is_so() -> bool:
        return (await handle.describe()).run_id != now

    await eventually(is_so, "the job goes on in another run")


def _read(stage: Stage) -> int:
    """How many readings with something new are archived."""
    return sum(".effect-" in key for key in stage.store.list(""))


async def _begun(
    stage: Stage, statements: list[str]
) -> tuple[WorkflowHandle[Any, Any], WorkflowHandle[Any, Any], JobArchive]:
    """A job that reads ``log.txt``, of which two turns have replies: the handle of its first run,
    that of whichever is the newest, and its archive.
    """
    (stage.workspace / "log.txt").write_text("0\n")
    first = await stage.start(stage.spec(statements, id="job"))
    archive = archive_of(stage, "job")
    await turn_of(archive, 2)
    return first, stage.client.get_workflow_handle(first.id), archive


async def test_a_sleep_through_runs_without_a_call(short: None, stage: Stage) -> None:
    """What each of them read is named by the step behind the sleep, and answers a frozen replay and
    a fork.
    """
    path = stage.workspace / "log.txt"
    first, handle, archive = await _begun(
        stage,
        [
            "v = view('log.txt').Run(freq=('Periodic', 0.1))",
            "wait(3600)",
            "x = v.text\nprint(x)",
            "finish(x)",
        ],
    )
    for number in range(1, 4):
        before = _read(stage)
        path.write_text(f"{number}\n")
        # A run may end before it has read that: the next one does.
        await eventually(lambda before=before: _read(stage) > before, f"it reads {number}")
        await _in_another_run(handle)
    await handle.signal("message", Note.of("wake up"))
    outcome = await first.result()
    assert archive.end(outcome.run).result == "3"
    step = archive.find_step(outcome.run, 3)
    assert len(step.interim.ticks) == 3
    through = [key for key in step.effects if not any(run in key for run in archive.runs())]
    assert len(through) >= 2, "some were read in runs without a call"
    await follows_its_record(stage, "job", outcome, 4)
    assert sound(archive)


async def test_a_run_that_is_reset_to_its_first_call(short: None, stage: Stage) -> None:
    """What it had read before that answers a frozen replay and a fork of the new timeline, too."""
    path = stage.workspace / "log.txt"
    first, handle, archive = await _begun(
        stage,
        [
            f"v = view('log.txt').Run(freq='Sync')\n{FILLS}",
            f"{FILLS}wait(3600)",
            f"{FILLS}x = v.text\nprint(x)",
            "finish(x)",
        ],
    )
    await until_phase(handle, "asleep")
    path.write_text("1\n")
    await handle.signal("message", Note.of("wake up"))
    outcome = await first.result()
    assert archive.end(outcome.run).result == "1"
    third = archive.find_step(outcome.run, 3)
    assert archive.find_step(outcome.run, 2).run != third.run, "it is its run's first"
    path.write_text("2\n")
    again = outcome
    # The second is a reset of a run that was made by one.
    for _ in range(2):
        made = await reset_job(stage, "job", rerun(stage, "job", again.run, 3))
        again = await outcome_of_reset(stage.client, made)
        assert (again.status, archive.end(again.run).result) == (JobStatus.SUCCEEDED, "1")
    await follows_its_record(stage, "job", again, 4)
    assert sound(archive)
