"""What an open job does now, or waits for: of that the archive has nothing yet."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from runtime.archive.lifecycle.tombstones import half_deleted
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ServerError
from runtime.base.standings import OPEN
from runtime.base.values import JobKey
from runtime.cli.reach import control_in_reach, note_unknown
from runtime.cli.reporters import running_text
from runtime.client.statuses import UNKNOWN, now_of
from runtime.server.target import Target


@dataclass(frozen=True)
class UnderWay:
    """How a job stands, and why, or what it does."""

    status: str
    reason: str

    def document(self) -> dict[str, str]:
        """As JSON."""
        return {"status": self.status, "reason": self.reason}


def under_way(store: ObjectStore, key: JobKey, target: Target) -> UnderWay | None:
    """What the job's newest run does, or how it ended, of which the archive has nothing where that
    was done in Temporal itself; None if nobody tells. No server is started for it.
    """
    try:
        return asyncio.run(_under_way(store, key, target))
    except ServerError as error:
        note_unknown(error)
        return None


async def _under_way(store: ObjectStore, key: JobKey, target: Target) -> UnderWay | None:
    async with control_in_reach(target, store) as control:
        if control is None:
            return None
        standing = await control.standing(key)
    if standing is None:
        return UnderWay(OPEN, await asyncio.to_thread(half_deleted, store, key) or UNKNOWN)
    if (outcome := standing.outcome) is not None:
        return UnderWay(str(outcome.status), outcome.reason)
    status, reason = now_of(standing)
    if standing.running is not None:
        reason = running_text(standing.running)
    return UnderWay(status, reason) if reason else None
