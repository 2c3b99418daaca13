"""What a batch was given, as its workflow's history has it: also while no worker answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime

from pydantic import ValidationError
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.converter import DataConverter

from runtime.base.errors import InputError
from runtime.base.spec.models import BatchBudget
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.own_runs import describe
from runtime.server.authentic import NotSigned, Refusal, in_workflow
from workflows.heard import Heard
from workflows.messages import BatchCarried, BatchOrder, CarriedPurse, Submission


async def submissions(
    client: Client, batch: str, run: str | None = None
) -> AsyncIterator[Submission]:
    """All that was submitted to a run of a batch, or to the newest; first what the run before left
    it.

    Raises:
        NotSigned: if somebody else began it.
    """
    name = batch_workflow_id(batch)
    converter = in_workflow(client, name)
    heard = Heard()
    async for event in client.get_workflow_handle(name, run_id=run).fetch_history_events():
        if event.HasField("workflow_execution_started_event_attributes"):
            begun = event.workflow_execution_started_event_attributes.input.payloads
            if len(begun) != 1:
                raise NotSigned(f"workflow {name} began without an order", Refusal.UNSIGNED)
            (order,) = await converter.decode(begun, [BatchOrder])
            if order.carried is not None:
                heard = Heard(order.carried.heard)
                yield _carried(order.carried)
            continue
        # As the workflow, which drops what it is given again.
        submission = await _submission(event, converter)
        if submission is not None and heard.is_new(submission.id):
            yield submission


async def figures(client: Client, batch: str) -> Submission | None:
    """How many jobs run at a time, what they may spend, by which queues their limited calls go and
    who is told of ends, as it holds for the newest run of a batch that was given something; None if
    there is none.

    What a stranger has started under the batch's id, and has ended, is passed over.

    Raises:
        InputError: if a stranger's workflow runs under that id: it would take what is meant for the
            batch.
        NotSigned: if there are only runs of others, or one runs that may be this user's, with
            another key.
    """
    refused: NotSigned | None = None
    async for run in _runs(client, batch):
        try:
            last = await _figures(client, batch, run.run_id)
        except NotSigned as error:
            if run.status is not WorkflowExecutionStatus.RUNNING:
                # A key that may be this user's tells more than that there is none.
                refused = error if refused is None or error.refusal.may_be_ours else refused
                continue
            if error.refusal.may_be_ours:
                raise
            raise InputError(
                f"{error.message}; and it runs: terminate it in Temporal, then give the same"
                " command again"
            ) from error
        if last is not None:
            return last
    if refused is not None:
        raise refused
    return None


async def _runs(client: Client, batch: str) -> AsyncIterator[WorkflowExecutionDescription]:
    """The runs under a batch's workflow id, the newest first."""
    name = batch_workflow_id(batch)
    newest = await describe(client, name)
    if newest is None:
        return
    yield newest
    # Only where the newest does not do: a list is a search on the server.
    listed = [one async for one in client.list_workflows(f"WorkflowId = '{name}'")]
    for one in sorted(listed, key=lambda run: run.start_time, reverse=True):
        if one.run_id != newest.run_id and (run := await describe(client, name, one.run_id)):
            yield run


async def _figures(client: Client, batch: str, run: str) -> Submission | None:
    last: Submission | None = None
    async for one in submissions(client, batch, run):
        # As the workflow takes them: what is left out there stays as it was.
        kept = (
            {"budget": one.budget or last.budget, "routes": one.routes or last.routes}
            if last is not None
            else {}
        )
        last = one.model_copy(update={"jobs": (), "pages": (), "rerun": (), "ends": {}, **kept})
    return last


async def _submission(event: HistoryEvent, converter: DataConverter) -> Submission | None:
    accepted = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
    if accepted.name == "submit":
        (submitted,) = await converter.decode(accepted.args.payloads, [Submission])
        return Submission.model_validate(submitted)
    signal = event.workflow_execution_signaled_event_attributes
    if signal.signal_name == "retry" and len(signal.input.payloads) == 1:
        # The workflow drops those that are not signed, and what is no submission: strangers can
        # give it anything that it was given before.
        with suppress(NotSigned, ValidationError):
            (again,) = await converter.decode(signal.input.payloads, [Submission])
            return Submission.model_validate(again)
    return None


def _carried(carried: BatchCarried) -> Submission:
    return Submission(
        jobs=carried.waiting,
        concurrency=carried.concurrency,
        pages=carried.pages,
        budget=_budget(carried.purse),
        routes=carried.routes,
        on_finish=carried.finishing.order,
    )


def _budget(carried: CarriedPurse | None) -> BatchBudget | None:
    if carried is None:
        return None
    amount = carried.purse.budget
    wall = datetime.fromisoformat(carried.until).timestamp() if carried.until else None
    return BatchBudget(
        turns=amount.turns,
        tokens=amount.tokens,
        usd=amount.usd,
        wall_seconds=wall - carried.began if wall is not None else None,
    )
