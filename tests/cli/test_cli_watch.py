"""Following a batch costs by what happens in it, not by how many jobs it has."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from runtime.base.spec.models import JobSpec, ModelSettings
from runtime.base.values import JobKey
from runtime.client import watch
from runtime.client.control import Control, Standing
from runtime.client.plans import JobPlan, Plan, Start
from runtime.client.watch import Ended, Turn, Watch
from runtime.job.phases import Phase
from runtime.job.stops import JobStatus
from workflows.messages import BatchState, JobOutcome, JobProgress

JOBS = 50
ROUNDS = 130


class Asleep:
    """A server on which all jobs of a batch sleep, until they end in round ``ROUNDS``."""

    def __init__(self, *, batch_tells: bool) -> None:
        self.rounds = 0
        self.asked: Counter[str] = Counter()
        self.batch_tells = batch_tells

    @property
    def over(self) -> bool:
        """Whether the jobs have ended."""
        return self.rounds >= ROUNDS

    async def batch_state(self, batch: str) -> BatchState | None:
        """One more round begins."""
        self.rounds += 1
        if not self.batch_tells:
            return None
        names = tuple(f"job-{n}" for n in range(JOBS))
        if self.over:
            return BatchState(ended=dict.fromkeys(names, JobStatus.SUCCEEDED))
        return BatchState(open=names)

    async def standing(self, key: JobKey) -> Standing:
        """The job's own answer."""
        self.asked[key.job] += 1
        if self.over:
            return Standing("run", outcome=JobOutcome(key=key, status=JobStatus.SUCCEEDED))
        progress = JobProgress(status=JobStatus.RUNNING, turn=3, phase=Phase.ASLEEP)
        return Standing("run", progress=progress)


def watched(server: Asleep, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All that is seen of the batch until its end."""
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    model = ModelSettings(name="scripted/none.yaml")
    jobs = tuple(
        JobPlan(JobSpec(id=f"job-{n}", goal="Sleep.", workspace="/", model=model), Start.NEW)
        for n in range(JOBS)
    )

    async def all_of_it() -> list[Any]:
        plan = Plan("nightly", JOBS, jobs)
        return [event async for event in Watch(cast(Control, server), plan).events()]

    return asyncio.run(all_of_it())


def test_jobs_that_sleep_are_seldom_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their batch is, and says when they have ended: that is seen in the same round."""
    server = Asleep(batch_tells=True)
    events = watched(server, monkeypatch)
    assert [type(event) for event in events] == [Turn] * JOBS + [Ended] * JOBS
    assert server.rounds == ROUNDS
    # In rounds 1, 2, 4, 7, 12, 21, 38, 63, 88, 113, and at the end.
    assert set(server.asked.values()) == {11}


def test_jobs_of_which_no_batch_tells_are_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was reset runs on when its batch has ended."""
    server = Asleep(batch_tells=False)
    events = watched(server, monkeypatch)
    assert [type(event) for event in events] == [Turn] * JOBS + [Ended] * JOBS
    assert set(server.asked.values()) == {ROUNDS}
