"""Waiting in tests: with a pause, so that what is waited for has a processor, and with a limit that
says what did not come.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.client.own_runs import describe
from runtime.worker.taskwise import REFUSED

PAUSE = 0.1
"""Seconds between two looks at a condition that is quick to look at."""
SECONDS = 240.0
"""Longer than anything takes on a busy machine; a test that waits for it has failed."""

_UNANSWERED = frozenset(
    (RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED)
)
"""Too many queries wait for the worker: the server refuses, or the client gives up."""


def pause_after(took: float, least: float = PAUSE) -> float:
    """Seconds until the next look at a condition of which one took so many: what is waited for has
    two thirds of a processor at least.
    """
    return max(least, 2 * took)


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = SECONDS
) -> None:
    """Wait until ``condition`` holds.

    Raises:
        AssertionError: if it does not come true.
    """
    end = time.monotonic() + seconds
    while True:
        looked = time.monotonic()
        held = condition()
        if await held if inspect.isawaitable(held) else held:
            return
        now = time.monotonic()
        assert now < end, f"this did not come true within {seconds:.0f} s: {what}"
        await asyncio.sleep(pause_after(now - looked))


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended, and that nobody has waited for yet, does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # Behind the name of its program, which may have anything in it.
    return stat.rpartition(")")[2].split()[0] != "Z"


async def forgotten(client: Client, workflow_id: str, run: str = "") -> None:
    """Have Temporal delete a workflow's newest run, or ``run``, as it does after some days, and
    wait until it has.
    """
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run)
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution),
        retry=True,
    )

    async def is_gone() -> bool:
        return await describe(client, workflow_id, run or None) is None

    await eventually(is_gone, f"Temporal has forgotten {workflow_id}")


async def progress_of(handle: WorkflowHandle[Any, Any]) -> dict[str, Any] | None:
    """How a job stands, as it answers it; None if its worker is too busy to answer now, or has
    to replay it first and was asked between two of its tasks.
    """
    try:
        told: dict[str, Any] = await handle.query("progress")
    except WorkflowQueryFailedError as error:
        if str(error) != REFUSED:
            raise
        return None
    except RPCError as error:
        if error.status not in _UNANSWERED:
            raise
        return None
    return told


async def until_phase(handle: WorkflowHandle[Any, Any], phase: str) -> None:
    """Wait until a job is in a phase. A job that ends first never will be."""

    async def there() -> bool:
        told = await progress_of(handle)
        if told is None:
            return False
        now = told.get("phase")
        assert now != "ending" or phase == "ending", f"the job ended, and was to be {phase}"
        return bool(now == phase)

    await eventually(there, f"the job is {phase}")


async def until_turn(handle: WorkflowHandle[Any, Any], turn: int) -> None:
    """Wait until a job has come to a turn. A job that ends first never will."""

    async def there() -> bool:
        now = await progress_of(handle)
        if now is None:
            return False
        assert now.get("phase") != "ending" or now["turn"] >= turn, (
            f"the job ended in turn {now['turn']}"
        )
        return bool(now["turn"] >= turn)

    await eventually(there, f"the job is in turn {turn}")
