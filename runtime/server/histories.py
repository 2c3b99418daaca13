"""Reading histories of the Temporal server."""

from __future__ import annotations

from collections.abc import AsyncIterator

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

_PAGE = 16
"""So many events are asked for at a time: what is looked for is mostly among the last."""


async def backwards(client: Client, execution: WorkflowExecution) -> AsyncIterator[HistoryEvent]:
    """The events of a run, the newest first; pages are asked for as they are come to.

    Raises:
        RPCError: if the server does not answer, or has no such run.
    """
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution, maximum_page_size=_PAGE
    )
    while True:
        page = await client.workflow_service.get_workflow_execution_history_reverse(
            request, retry=True
        )
        for event in page.history.events:
            yield event
        if not page.next_page_token:
            return
        request.next_page_token = page.next_page_token
