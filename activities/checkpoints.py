"""The activities that archive a job's whole state and give it back, in parts that Temporal
takes.
"""

from __future__ import annotations

import asyncio
import base64
import zlib

from temporalio import activity

from activities.build import this_build
from activities.record import CheckpointPart, LoadOrder, Saved, SaveOrder
from runtime.archive.checkpoints import read_checkpoint, write_checkpoint
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.failpoints import failpoint
from runtime.job.checkpoint import INTERPRETER


class CheckpointActivities:
    """``save_checkpoint``, a local activity, whose input never stands in a history; and
    ``load_checkpoint``.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="save_checkpoint")
    async def save_checkpoint(self, order: SaveOrder) -> Saved:
        """Archive the state, and return its address."""
        if order.state is None or order.parent is None:
            return Saved()
        failpoint("checkpoint.before")
        ref = await asyncio.to_thread(
            write_checkpoint,
            JobArchive(self._store, order.batch, order.job),
            run=activity.info().workflow_run_id or "",
            turn=order.turn,
            parent=order.parent,
            interpreter=order.interpreter,
            state=order.state,
        )
        failpoint("checkpoint.before_return")
        return Saved(checkpoint=ref)

    @activity.defn(name="load_checkpoint")
    async def load_checkpoint(self, order: LoadOrder) -> CheckpointPart:
        """One part of an archived state: zlib of its JSON, cut, in base64.

        Raises:
            ArchiveError: if the checkpoint cannot be read, is not there or is damaged.
        """
        checkpoint = await asyncio.to_thread(read_checkpoint, self._store, order.checkpoint)
        # Always at this level: the parts of one state may come from different workers.
        data = zlib.compress(canonical_json(checkpoint.state), 6)
        start = order.part * order.size
        return CheckpointPart(
            data=base64.b64encode(data[start : start + order.size]).decode(),
            parts=-(-len(data) // order.size),
            size=order.size,
            interpreter=INTERPRETER,
            build=this_build().id,
            replay_version=this_build().replay_version,
        )
