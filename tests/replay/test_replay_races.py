"""Resets that race with messages, a cancel and each other, at seeded moments: one outcome, and
nothing that was taken is lost.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from temporalio.client import WorkflowExecutionStatus

from runtime.archive.job import JobArchive
from runtime.archive.replays import replays
from runtime.base.errors import ServerError
from runtime.client.resets import Reset, outcome_of_reset
from runtime.job.stops import JobStatus
from runtime.projection.segments import SegmentKind
from tests.replay.replays import held, rerun, reset_job, turn_of
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 16
JOB = [*({"code": f"n = {n}", "delay": 0.05} for n in range(TURNS - 1)), "finish(n)"]
HELD = TURNS - 1
"""The turn whose reply waits until all that races has come: nothing of it meets a job that has
ended, on however slow a machine.
"""
MESSAGES = 10
SPREAD = 0.4
"""Seconds over which all that races is spread: some eight turns of the job."""


class Race:
    """A job that runs, and what happens to it.

    ``sent`` are the messages that the server took, in order.
    """

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.chance = random.Random(seed)
        self.sent: list[str] = []
        self.model, self.gate = held(stage, JOB, HELD)

    async def start(self) -> str:
        """Have the job take three turns; its run."""
        await self.stage.start(self.stage.spec(self.model, id="job"))
        await turn_of(self.archive, 3)
        return self.archive.runs()[0]

    @property
    def archive(self) -> JobArchive:
        return archive_of(self.stage, "job")

    async def talk(self) -> None:
        """Send one message after the other."""
        for number in range(MESSAGES):
            await asyncio.sleep(self.chance.random() * 2 * SPREAD / MESSAGES)
            await self.stage.client.get_workflow_handle(self.stage.started[0]).signal(
                "message", Note.of(f"message {number}")
            )
            self.sent.append(f"message {number}")

    async def take_back(self, run: str, start: int) -> Reset:
        """Take the job back to a statement, which from then on says so."""
        order = rerun(self.stage, "job", run, start, statement=f"who = {start}")
        await asyncio.sleep(self.chance.random() * SPREAD)
        return await reset_job(self.stage, "job", order)

    async def cancel(self) -> None:
        """Cancel whatever run is open."""
        await asyncio.sleep(self.chance.random() * SPREAD)
        await self.stage.client.get_workflow_handle(self.stage.started[0]).cancel()

    def shown(self, run: str, turn: int) -> list[str]:
        """The messages that a turn's prompt shows."""
        layout = self.archive.turn_layout(run, turn)
        return [segment.text for segment in layout if segment.kind is SegmentKind.MESSAGE]

    async def check(self) -> None:
        """No run is open, one run at most claimed each order, and archive and histories are
        sound.
        """
        archive = self.archive
        claimed = [replay.run for replay in replays(archive) if replay.run is not None]
        assert len(claimed) == len(set(claimed))
        for run in archive.runs():
            described = await self.stage.client.get_workflow_handle(
                self.stage.started[0], run_id=run
            ).describe()
            assert described.status in {
                WorkflowExecutionStatus.COMPLETED,
                WorkflowExecutionStatus.TERMINATED,
            }
        assert sound(archive)
        await replay_runs(self.stage.client, self.stage, "job")


@pytest.mark.parametrize("seed", range(3))
async def test_resets_race_with_each_other(stage: Stage, seed: int) -> None:
    """One of three resets stays; the others are told so."""
    race = Race(stage, seed)
    run = await race.start()
    made = await asyncio.gather(*(race.take_back(run, start) for start in (1, 2, 3)))
    race.gate.touch()
    ends = await asyncio.gather(
        *(outcome_of_reset(stage.client, one) for one in made), return_exceptions=True
    )
    lost = [end for end in ends if isinstance(end, BaseException)]
    (left,) = [end for end in ends if not isinstance(end, BaseException)]
    assert [type(error) for error in lost] == [ServerError] * 2
    assert all("another replay took the job over" in str(error) for error in lost)
    assert (left.status, left.turns) == (JobStatus.SUCCEEDED, TURNS)
    await race.check()


@pytest.mark.parametrize("seed", range(3))
async def test_a_reset_races_with_messages(stage: Stage, seed: int) -> None:
    """Every message that the server took is in the last prompt, once, in order, whichever run it
    met.
    """
    race = Race(stage, seed)
    run = await race.start()
    _, made = await asyncio.gather(race.talk(), race.take_back(run, 2))
    race.gate.touch()
    left = await outcome_of_reset(stage.client, made)
    assert (left.status, left.turns) == (JobStatus.SUCCEEDED, TURNS)
    assert len(race.sent) == MESSAGES
    assert race.shown(left.run, TURNS) == race.sent
    await race.check()


@pytest.mark.parametrize("seed", range(3))
async def test_a_reset_races_with_a_cancel(stage: Stage, seed: int) -> None:
    """The cancel ends the run that was open when it came: then the reset goes on from it, or is
    itself ended by it.

    It may be ended before its first call, and then has an end alone.
    """
    race = Race(stage, seed)
    run = await race.start()
    _, made = await asyncio.gather(race.cancel(), race.take_back(run, 2))
    race.gate.touch()
    left = await outcome_of_reset(stage.client, made)
    uncalled = race.archive.end_without_calls()
    assert left.run == (uncalled.run if uncalled is not None else race.archive.runs()[-1])
    assert (left.status, left.turns == TURNS) in {
        (JobStatus.SUCCEEDED, True),
        (JobStatus.CANCELLED, False),
    }
    assert race.archive.end(left.run).status == left.status
    await race.check()
