"""What is booked for a call that was cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.contracts import CutCall
from activities.cut_calls import CutCallActivities
from runtime.archive.stores import MemoryStore
from runtime.base.errors import ArchiveError
from runtime.base.values import Failed, JobKey, Usage
from workflows import cutting

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


@workflow.defn(name="Asking", sandboxed=False)
class Asking:
    """Asks what a call used that was cut."""

    @workflow.run
    async def run(self, told: Failed) -> Failed:
        """What was ``told`` of it is what its error says."""
        key = JobKey(batch="night", job="a")
        cut = CutCall(key=key, turn=1, activity="turn-1", model={"name": "scripted/none"})
        return await cutting.spent_on(cut, told)


class Away(MemoryStore):
    """An archive that is out of reach."""

    def get(self, key: str) -> bytes:
        """Never."""
        raise ArchiveError("away")

    def list(self, prefix: str) -> Iterator[str]:
        """Never."""
        raise ArchiveError("away")


@pytest.mark.parametrize("away", [False, True])
async def test_what_the_error_told_is_booked_if_the_archive_cannot_say(
    temporal: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """The archive knows better: nothing, where it has no attempt."""
    monkeypatch.setattr(cutting, "RECORD_TRIES", RetryPolicy(maximum_attempts=2))
    queue = f"cutting-{away}"
    told = Failed(attempts=1, usage=Usage(prompt=7), cost_usd=0.5)
    activities = CutCallActivities(Away() if away else MemoryStore())
    async with Worker(
        temporal.client,
        task_queue=queue,
        workflows=[Asking],
        activities=[activities.settle_call],
        workflow_runner=UnsandboxedWorkflowRunner(),
        build_id="asking",
    ):
        spent = await temporal.client.execute_workflow(Asking.run, told, id=queue, task_queue=queue)
    assert spent == (told if away else Failed())
