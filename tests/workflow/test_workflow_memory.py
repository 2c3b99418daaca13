"""What a worker remembers is for jobs that go on."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from activities._handed_over import Encoded
from runtime.archive.container import ArchivedObject
from runtime.archive.layouts import Layout
from runtime.archive.requests import Request
from runtime.projection.messages import Told
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

REMEMBERED = (ArchivedObject, Encoded, Layout, Request, Told)
"""What the next turn of a job needs: the store's objects, and prompts in their forms."""


def remembered() -> Counter[str]:
    """How many of them live in this process."""
    gc.collect()
    # By type alone: a stand-in of the SDK's sandbox answers ``isinstance`` with an error.
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in REMEMBERED)


async def test_a_job_that_has_ended_takes_no_memory(
    temporal: WorkflowEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A worker that has seen jobs end remembers as much as before them."""
    stage = Stage(temporal.client, tmp_path, request.node.name)
    async with stage.open():
        before = remembered()
        for _ in range(3):
            await stage.run(["x = 1", "print(x)", "finish(x)"])
        assert remembered() - before == Counter()
    await stage.replay_all()
