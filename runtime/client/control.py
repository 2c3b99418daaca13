"""How jobs and batches stand now: asked of Temporal, whose word the archive vouches for.

Needs no worker of its own. What is asked of them beside that is in ``planning``, ``submission`` and
``wishes``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import FailureError
from temporalio.service import RPCError

from runtime.archive.stores import ObjectStore
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.own_runs import OwnRuns, describe
from runtime.client.standing import ANSWER_WITHIN, Standing, run_outcome, run_standing
from runtime.server.authentic import NotSigned
from workflows.messages import BatchNews, BatchState, JobOutcome

Answer = TypeVar("Answer", BatchState, BatchNews)


@dataclass(frozen=True)
class Control:
    """A client's side of Holdfast, on one Temporal namespace and one archive."""

    client: Client
    store: ObjectStore

    async def newest(self, key: JobKey) -> WorkflowExecutionDescription | None:
        """What Temporal says of the job's newest run, strangers' under its id apart; None if it
        knows of none.

        Raises:
            NotSigned: if there are only runs of others, and one may be this user's, with another
                key.
        """
        return await self._own.newest(key)

    async def newest_run(self, key: JobKey) -> str:
        """The job's newest run; empty if Temporal knows none."""
        description = await self.newest(key)
        return (description.run_id or "") if description is not None else ""

    async def standing(self, key: JobKey) -> Standing | None:
        """How the job's newest run stands; None if it was never started."""
        description = await self.newest(key)
        return None if description is None else await run_standing(self.client, key, description)

    async def outcome(self, key: JobKey) -> JobOutcome | None:
        """How the job's newest run ended; None while it is open, and before it was started."""
        description = await self.newest(key)
        if description is None or description.status is WorkflowExecutionStatus.RUNNING:
            return None
        return await run_outcome(self.client, key, description)

    async def batch_state(self, batch: str) -> BatchState | None:
        """What the batch says of its jobs; None if it does not run, nothing if no worker answers
        for it.
        """
        return await self._asked(batch, BatchState, "state")

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """What has happened in a batch since ``known`` runs of its jobs had ended; None if it does
        not run, nothing if no worker answers for it.
        """
        return await self._asked(batch, BatchNews, "news", known)

    async def last_news(self, batch: str, known: int) -> BatchNews:
        """What had happened in a batch that has ended, as ``batch_news`` has it; nothing if no
        worker answers for it.
        """
        return await self._answer(batch, BatchNews, "news", known)

    async def batch_end(self, batch: str) -> None:
        """Wait until a batch's workflow has ended, or cannot be asked: at once if there is none."""
        with suppress(RPCError, WorkflowFailureError, NotSigned):
            await self.client.get_workflow_handle(batch_workflow_id(batch)).result()

    async def left_by(self, batch: str) -> str:
        """What became of a job that is not there, whose batch does not run: ``was not started:
        ...``, with the reason.
        """
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        description = await describe(self.client, handle.id)
        if description is None:
            return "is lost: Temporal's database was, or job and batch were deleted there"
        if description.status is WorkflowExecutionStatus.FAILED:
            try:
                await handle.result()
            except WorkflowFailureError as error:
                if isinstance(error.cause, FailureError):
                    return f"was not started: {error.cause.message}"
        return "was not started: its batch's workflow was ended from outside"

    async def _asked(
        self, batch: str, answer: type[Answer], query: str, *arguments: int
    ) -> Answer | None:
        """What a batch answers; None if it does not run, an empty one if no worker does for it."""
        description = await describe(self.client, batch_workflow_id(batch))
        if description is None or description.status is not WorkflowExecutionStatus.RUNNING:
            return None
        return await self._answer(batch, answer, query, *arguments)

    async def _answer(
        self, batch: str, answer: type[Answer], query: str, *arguments: int
    ) -> Answer:
        """What a batch answers, be it running or not; an empty one if no worker does for it."""
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        try:
            told: Answer = await handle.query(
                query, args=arguments, result_type=answer, rpc_timeout=ANSWER_WITHIN
            )
            return told
        # An answer that is not signed is no worker's of ours: as if none had answered.
        except (RPCError, WorkflowQueryFailedError, NotSigned):
            return answer()

    @cached_property
    def _own(self) -> OwnRuns:
        return OwnRuns(self.client, self.store)
