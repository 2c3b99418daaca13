"""A job is taken back without Holdfast."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client


async def reset_by_hand(client: Client, workflow_id: str, event: int) -> str:
    """Reset a workflow to the task that ``event`` completed, as Temporal's own command does; the
    new run.
    """
    made = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            reason="a test",
            workflow_task_finish_event_id=event,
            request_id=f"reset-{workflow_id}-{event}",
        ),
        retry=True,
    )
    return made.run_id
