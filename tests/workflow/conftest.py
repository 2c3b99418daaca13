"""A stage on which a test runs jobs and has their histories replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from stage import Stage
from temporalio.testing import WorkflowEnvironment


@pytest_asyncio.fixture(loop_scope="session")
async def stage(temporal: WorkflowEnvironment, tmp_path: Path, request) -> AsyncIterator[Stage]:
    """A worker with an archive of its own.

    When the test is over, every history it made must replay, and every prompt be valid.
    """
    made = Stage(temporal.client, tmp_path, request.node.name)
    async with made.open():
        yield made
    await made.replay_all()
    made.check_prompts()
