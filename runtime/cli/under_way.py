"""What an open job does now, or waits for: of that the archive has nothing yet."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from runtime.archive.stores import ObjectStore
from runtime.base.errors import ServerError
from runtime.base.values import JobKey
from runtime.cli.reach import control_in_reach, note_unknown
from runtime.cli.reporters import running_text
from runtime.client.standing import Standing
from runtime.client.statuses import now_of
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
        standing = asyncio.run(_standing(store, key, target))
    except ServerError as error:
        note_unknown(error)
        return None
    if standing is None:
        return None
    if (outcome := standing.outcome) is not None:
        return UnderWay(str(outcome.status), outcome.reason)
    status, reason = now_of(standing)
    if standing.running is not None:
        reason = running_text(standing.running)
    return UnderWay(status, reason) if reason else None


async def _standing(store: ObjectStore, key: JobKey, target: Target) -> Standing | None:
    async with control_in_reach(target, store) as control:
        return None if control is None else await control.standing(key)
