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

_LEVEL = 6
"""Always this: a run of before has a state that was compressed as a whole in parts of different
workers.
"""


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
        """One part of an archived state: of its JSON, with zlib, in base64.

        Raises:
            ArchiveError: if the checkpoint cannot be read, is not there or is damaged.
        """
        checkpoint = await asyncio.to_thread(read_checkpoint, self._store, order.checkpoint)
        return part_of(canonical_json(checkpoint.state), order)


def part_of(state: bytes, order: LoadOrder) -> CheckpointPart:
    """The part of a state's JSON that is ordered."""
    if order.start is None:
        whole = zlib.compress(state, _LEVEL)
        data = whole[order.part * order.size :][: order.size]
        parts, end = -(-len(whole) // order.size), None
    else:
        data, end = _next(state, order.start, order.size)
        parts = order.part + (1 if end == len(state) else 2)
    return CheckpointPart(
        data=base64.b64encode(data).decode(),
        parts=parts,
        size=order.size,
        end=end,
        interpreter=INTERPRETER,
        build=this_build().id,
        replay_version=this_build().replay_version,
    )


def _next(state: bytes, start: int, size: int) -> tuple[bytes, int]:
    """As much of a state from ``start`` on as has ``size`` bytes compressed, and where it ends."""
    taken = len(state) - start
    while len(data := zlib.compress(state[start : start + taken], _LEVEL)) > size:
        # Less than its share, since its beginning may compress less than all of it.
        taken = taken * size * 9 // (len(data) * 10)
    return data, start + taken
