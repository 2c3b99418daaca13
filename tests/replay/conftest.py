"""The stage of the workflow tests, and a server on which jobs go on in other runs early; every
history that a test here makes is replayed when it is over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def hurried() -> AsyncIterator[WorkflowEnvironment]:
    """A server that suggests early to continue as new: what a module of long jobs has as its
    ``temporal``.
    """
    # A run of a job is asked to continue as new after some thirty turns, not after six hundred.
    async with temporal_server("limit.historyCount.suggestContinueAsNew=60") as environment:
        yield environment


@pytest_asyncio.fixture(loop_scope="session")
async def stage(
    temporal: WorkflowEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """A worker with an archive of its own.

    When the test is over, every history must replay, and every prompt be valid.
    """
    made = Stage(temporal.client, tmp_path, request.node.name)
    async with made.open():
        yield made
    await made.replay_all()
    made.check_prompts()
