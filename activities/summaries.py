"""The activity that has a source summed up by a model, in the background of a job (executable-context.md section 5.2, level 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from temporalio import activity

from activities import _summary_cache as cache
from activities.contracts import ReadBatch, ReadBatchResult, ReplyForm, TurnCall
from activities.model import ModelActivities
from activities.workspace import WorkspaceActivities, count_with
from runtime.archive import keys
from runtime.archive.stores import ObjectStore
from runtime.context.excerpts import Count
from runtime.projection.segments import Add, LayoutDelta
from runtime.values import ModelReply, Usage


class SummaryActivities:
    """``summarise_source``. The model call is archived as a side run of the job whose background it is."""

    def __init__(
        self,
        store: ObjectStore,
        workspace: WorkspaceActivities,
        model: ModelActivities,
        counter: Callable[[str], Count] = count_with,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._model = model
        self._counter = counter
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @activity.defn(name="summarise_source")
    async def summarise_source(self, batch: ReadBatch) -> ReadBatchResult:
        """The reading of the batch's one request at level 2, after its summary was written if nobody had it written before.

        Raises:
            ApplicationError: as ``call_model``.
            ArchiveError: as ``call_model``.
        """
        usage, cost = Usage(), 0.0
        region = await asyncio.to_thread(self._workspace.region, batch)
        if region is not None:
            # Jobs of one worker wait for each other; those of several may, at worst, pay once each.
            lock = self._locks.setdefault(region.key, asyncio.Lock())
            async with lock:
                if await asyncio.to_thread(cache.found, self._store, region) is None:
                    reply = await self._ask(batch, region)
                    usage, cost = reply.usage, reply.cost_usd
        result = await asyncio.to_thread(self._workspace.read_sources, batch)
        return result.model_copy(update={"usage": usage, "cost_usd": cost})

    async def _ask(self, batch: ReadBatch, region: cache.Region) -> ModelReply:
        if batch.key is None:
            raise ValueError("a summary is written for a job")
        prompt = region.prompt(self._counter(batch.encoding))
        call = TurnCall(
            key=batch.key,
            turn=batch.turn,
            layout=LayoutDelta(parts=tuple(Add(segment=segment) for segment in prompt)),
            model=region.model,
            form=ReplyForm.SCRIPT,
            encoding=batch.encoding,
            reset_event_id=0,
        )
        run = keys.side_run(activity.info().workflow_run_id or "", f"view-{batch.turn}-{batch.effect}")
        reply = await self._model.side_call(call, run)
        text = reply.text.strip() or "(the model wrote nothing)"
        await asyncio.to_thread(cache.keep, self._store, region, text, reply.step.model_dump())
        return reply
