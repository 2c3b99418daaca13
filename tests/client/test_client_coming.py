"""What a batch that runs has still to do for jobs that have ended."""

from __future__ import annotations

from runtime.archive.stores import MemoryStore
from runtime.base.spec.models import BatchSpec
from runtime.base.values import JobKey
from runtime.client.coming import TRIES, with_those_to_come
from runtime.client.plans import JobPlan, Plan, Start
from runtime.job.stops import JobStatus
from workflows.messages import BatchState, JobOutcome

FAILED = JobOutcome(key=JobKey(batch="b", job="f"), run="r", status=JobStatus.FAILED)
PLAN = Plan(BatchSpec(batch="b", jobs=()), ("f",), {"f": JobPlan("f", Start.DONE, outcome=FAILED)})


class Asked:
    """A batch whose worker is too busy to answer until the last of so many questions."""

    store = MemoryStore()

    def __init__(self, questions: int) -> None:
        self.left = questions

    async def batch_state(self, batch: str) -> BatchState:
        self.left -= 1
        return BatchState(waiting=("f",)) if self.left == 0 else BatchState()

    async def newest_run(self, key: JobKey) -> str:
        return "r"


async def test_a_batch_whose_worker_is_busy_is_asked_again() -> None:
    """Else a job that waits to begin again was told as failed, and nobody waited for it; where
    nobody answers, the command goes on all the same.
    """
    plan = await with_those_to_come(Asked(TRIES), PLAN)  # type: ignore[arg-type]
    assert plan.known == {"f": JobPlan("f", Start.RERUN, before="r")}
    assert await with_those_to_come(Asked(TRIES + 1), PLAN) == PLAN  # type: ignore[arg-type]
