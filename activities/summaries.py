"""The activities that have sources and groups summed up by a model, in the background of a job
(docs/contract/executable-context.md sections 5.2, 5.3).

A summary is written once for all jobs that show a model the same: it is looked up by what it is
made from, and several that want it at once wait for one of them, in a process by a lock and between
processes by a claim in the store.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities import _summary_cache as cache
from activities._claims import Claims, Times
from activities._failed_attempts import spent_on_call
from activities._masked import masked_material
from activities._options import ModelOptions
from activities.contracts import (
    GroupMaterial,
    ReadBatch,
    ReadBatchResult,
    ReplyForm,
    TurnCall,
    summary_name,
)
from activities.model import ModelActivities
from activities.workspace import WorkspaceActivities, count_with
from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.values import Failed, ModelReply
from runtime.context.excerpts import fitting
from runtime.context.sources import ReadResult, ReadStatus
from runtime.projection.segments import Add, LayoutDelta

NOTHING = "(the model wrote nothing)"


class SummaryActivities:
    """``summarise_source``, ``summarise_group`` and ``keep_material``.

    A model call is archived as a side run of the job whose background it is.
    """

    def __init__(
        self,
        store: ObjectStore,
        workspace: WorkspaceActivities,
        model: ModelActivities,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._model = model
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @activity.defn(name="summarise_source")
    async def summarise_source(self, batch: ReadBatch) -> ReadBatchResult:
        """The reading of the batch's one request at level 2, after its summary was written if
        nobody had it written before.

        Raises:
            ApplicationError: as ``call_model``; type ``NoServers`` for what an MCP server offers,
                where who calls models starts none.
            ArchiveError: as ``call_model``.
        """
        if batch.servers and not self._workspace.has_servers:
            raise ApplicationError(
                "what an MCP server offers is not summed up where workers have roles",
                type="NoServers",
                non_retryable=True,
            )
        region = await asyncio.to_thread(self._workspace.region, batch)
        spent = Failed() if region is None else await self._written(batch, region, "view")
        # Read again, by the same way as any reading: the summary is in the store by now.
        result = await asyncio.to_thread(self._workspace.read_sources, batch)
        return _with_cost(result, spent)

    @activity.defn(name="summarise_group")
    async def summarise_group(self, batch: ReadBatch) -> ReadBatchResult:
        """The summary of a group's members, which are kept at ``material``; errors as
        ``summarise_source``.
        """
        [request] = batch.requests
        count = count_with(batch.encoding)
        members = await asyncio.to_thread(
            cache.members_of, self._store, batch.material, request, batch.summary_model
        )
        spent = await self._written(batch, members, "group")
        summary = await asyncio.to_thread(cache.known_summary, self._store, members)
        text = fitting(summary or NOTHING, members.budget, count)
        result = ReadResult(
            obj_id=request.obj_id, status=ReadStatus.OK, text=text, tokens=count(text)
        )
        # A summary that is not there any more was not shown either.
        used = [batch.material, *([members.key] if summary is not None else [])]
        kept = await asyncio.to_thread(
            self._workspace.keep, batch, ReadBatchResult(results=(result,)), used
        )
        return _with_cost(kept, spent)

    @activity.defn(name="keep_material")
    async def keep_material(self, order: GroupMaterial) -> str:
        """Keep what a group's summary is to be made from, without secrets; where it is.

        Runs in the workflow's own worker.
        """
        material = await asyncio.to_thread(masked_material, order)
        return await asyncio.to_thread(cache.keep_material, self._store, material)

    async def _written(self, batch: ReadBatch, wanted: cache.Wanted, kind: str) -> Failed:
        """See to it that the summary is in the store; what this job spent on it."""

        async def done() -> bool:
            return await asyncio.to_thread(cache.known_summary, self._store, wanted) is not None

        if await done():
            return await self._spent_before(batch, wanted, kind)
        info = activity.info()
        owner = f"{info.workflow_run_id}/{info.activity_id}"
        claims = Claims(self._store, wanted.key, owner, Times())
        # The lock first: the tasks of this process need not look at the store while they wait.
        lock = self._locks.setdefault(wanted.key, asyncio.Lock())
        async with lock, claims.held(done) as mine:
            if not mine:
                return await self._spent_before(batch, wanted, kind)
            reply = await self._ask(batch, wanted, kind)
        return reply.failed + Failed(usage=reply.usage, cost_usd=reply.cost_usd)

    async def _spent_before(self, batch: ReadBatch, wanted: cache.Wanted, kind: str) -> Failed:
        """What earlier attempts of this activity spent, the last of which may have ended when the
        summary was kept: nobody else books it.
        """
        info = activity.info()
        if batch.key is None or info.attempt == 1:
            return Failed()
        archive, run = JobArchive.of(self._store, batch.key), _side_run(batch, kind)
        options = ModelOptions.model_validate(wanted.model)
        return await asyncio.to_thread(
            spent_on_call, archive, run, batch.turn, info.activity_id, options
        )

    async def _ask(self, batch: ReadBatch, wanted: cache.Wanted, kind: str) -> ModelReply:
        if batch.key is None:
            raise ValueError("a summary is written for a job")
        prompt = wanted.prompt(count_with(batch.encoding))
        call = TurnCall(
            key=batch.key,
            turn=batch.turn,
            layout=LayoutDelta(parts=tuple(Add(segment=segment) for segment in prompt)),
            model=wanted.model,
            form=ReplyForm.SCRIPT,
            encoding=batch.encoding,
            reset_event_id=0,
            redact=batch.redact,
            left=batch.left,
            retry=batch.retry,
        )
        reply = await self._model.side_call(call, _side_run(batch, kind))
        text = reply.text.strip() or NOTHING
        await asyncio.to_thread(cache.keep, self._store, wanted, text, reply.step.model_dump())
        return reply


def _side_run(batch: ReadBatch, kind: str) -> str:
    """The run in whose name the call is archived."""
    name = summary_name(kind, batch.turn, batch.effect)
    return keys.side_run(activity.info().workflow_run_id or "", name)


def _with_cost(result: ReadBatchResult, spent: Failed) -> ReadBatchResult:
    """``result``, with what the call and the failed attempts at it cost."""
    return result.model_copy(update={"usage": spent.usage, "cost_usd": spent.cost_usd})
