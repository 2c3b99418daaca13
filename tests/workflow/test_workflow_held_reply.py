"""A reply that waits to be archived: whoever asks how the job stands is told, on whatever host."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import ArchiveError
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.statuses import now_of
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from tests.workflow.stage import Stage

pytestmark = pytest.mark.server


class Refusing(DirectoryStore):
    """A store that refuses the reply of the first turn while ``refuses``."""

    refuses = True

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``."""
        if self.refuses and key.endswith("0000001.step"):
            raise ArchiveError("S3 says InvalidAccessKeyId")
        return super().put_if_absent(key, data)


async def test_a_job_says_that_its_reply_waits_to_be_archived(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """And why, while it is so: the model is not called again, and the worker's log may be
    elsewhere.
    """
    stage = Stage(temporal.client, tmp_path, "held")
    store = stage.store = Refusing(tmp_path / "refusing")
    control = Control(stage.client, store)
    async with stage.open():
        spec = stage.spec(["finish(1)"])
        handle = await stage.start(spec)
        # Of a call that has not told anything yet either.
        assert await control.standing(JobKey(batch=stage.batch, job=spec.id)) is not None

        async def told() -> tuple[str, str] | None:
            standing = await control.standing(JobKey(batch=stage.batch, job=spec.id))
            return now_of(standing) if standing is not None and standing.trouble else None

        async def waits() -> bool:
            return await told() == (
                "running",
                "turn 1: the reply waits to be archived: S3 says InvalidAccessKeyId",
            )

        await eventually(waits, "it is told")
        store.refuses = False
        outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 1)
    assert len(stage.archive(spec).attempts(outcome.run, 1)) == 1
    await stage.replay_all()


async def test_nobody_is_told_that_a_reply_waits_that_is_lost(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """As of a worker that is stopped: the last heartbeat of its attempt stays."""
    stage = Stage(temporal.client, tmp_path, "lost")
    store = stage.store = Refusing(tmp_path / "refusing")
    control = Control(stage.client, store)
    spec = stage.spec(["finish(1)"])

    async def held() -> bool:
        standing = await control.standing(JobKey(batch=stage.batch, job=spec.id))
        return standing is not None and standing.trouble is not None and standing.trouble.held

    async def lost() -> bool:
        return not await held()

    async with stage.open():
        handle = await stage.start(spec)
        await eventually(held, "it is held")
    await eventually(lost, "it is told as lost")
    store.refuses = False
    async with stage.open():
        await handle.result()
    await stage.replay_all()
