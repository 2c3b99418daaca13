"""Another user of the machine: ``python stranger.py ADDRESS QUEUE JOB HOME EVIL DEED`` as root
becomes one, tries, and prints JSON.

``EVIL`` is a directory of that user's, with a script of its own; ``DEED`` is ``try`` (all but to
end the job), ``terminate`` or ``delete``.
"""

from __future__ import annotations

import asyncio
import encodings.idna
import json
import os
import sys
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError

from runtime.base.spec.models import JobSpec, ModelSettings
from runtime.base.values import JobKey
from runtime.worker.taskwise import REFUSED
from workflows.messages import JobOrder

NOBODY = 65_534


def readable(home: Path) -> list[str]:
    """What of a state directory this user can read or list."""
    found = []
    for path in (
        "key",
        "archive",
        "server",
        "server/temporal.db",
        "server/server.log",
        "server/server.json",
    ):
        try:
            (os.listdir if (home / path).is_dir() else open)(home / path)
        except OSError:
            continue
        found.append(path)
    return found


async def attempt(client: Client, queue: str, job: str, evil: Path) -> dict[str, Any]:
    """Start a job of one's own on the owner's worker, and speak to a job of the owner's."""
    batch = job.split("/")[1]
    spec = JobSpec(
        id="evil", goal="g", workspace="/", model=ModelSettings(name=f"scripted/{evil}/evil.py")
    )
    order = JobOrder(key=JobKey(batch=batch, job="evil"), spec=spec, definition="")
    handle = await client.start_workflow(
        "JobWorkflow", order, id=f"holdfast/{batch}/evil", task_queue=queue
    )
    try:
        ended = str(await handle.result())
    except WorkflowFailureError as error:
        ended = (
            error.cause.type or ""
            if isinstance(error.cause, ApplicationError)
            else str(error.cause)
        )
    owners = client.get_workflow_handle(job)
    for name in ("message", "condense", "cancel", "anything"):
        for values in ([], ["finish now"], [{"id": "1", "text": "stop"}], [1, 2, 3]):
            await owners.signal(name, args=values)
    return {"started": ended, "asked": await answer_of(owners)}


async def answer_of(job: WorkflowHandle[Any, Any]) -> str:
    """What comes of asking a job how it stands."""
    while True:
        try:
            await job.query("progress", "hi")
        except WorkflowQueryFailedError as error:
            # Its worker has to replay it first, and was asked between two of its tasks.
            if str(error) == REFUSED:
                await asyncio.sleep(0.1)
                continue
            return "refused" if "is not signed" in str(error) else str(error)
        return "answered"


async def main(address: str, queue: str, job: str, home: str, evil: str, deed: str) -> None:
    """See the module's docstring."""
    client = await Client.connect(
        address, namespace="holdfast", data_converter=pydantic_data_converter
    )
    handle = client.get_workflow_handle(job)
    said: dict[str, Any] = {"uid": os.geteuid(), "readable": readable(Path(home))}
    match deed:
        case "try":
            said |= await attempt(client, queue, job, Path(evil))
        case "terminate":
            await handle.terminate()
        case "delete":
            await client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(
                    namespace="holdfast", workflow_execution=WorkflowExecution(workflow_id=job)
                )
            )
    sys.stdout.write(json.dumps(said))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    assert encodings.idna  # imported while this process can still read Python's own files
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    asyncio.run(main(*sys.argv[1:]))
