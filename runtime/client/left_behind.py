"""Sub-jobs that were lost with their parents, of which one begins anew: it starts its own, and
nobody would ever end those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from runtime.archive.forms import NewEnd
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.signing import signer_of
from runtime.archive.spending import spent
from runtime.base.values import JobKey, Usage
from runtime.client.control import Control
from runtime.client.lost import is_open, lost_run, sub_jobs_by_parent
from runtime.client.plans import Plan, Start
from runtime.job.stops import JobStatus

REASON = "cancelled: it was lost with its parent, which began anew"


async def end_left_behind(control: Control, plan: Plan) -> None:
    """End the sub-jobs, at any depth, of the lost jobs that the plan begins anew: as cancelled, in
    the archive, which alone knows of them.

    Those that cannot be read stay as they are.
    """
    anew = [job.id for job in plan.counted(Start.NEW) if job.before]
    if not anew:
        return
    with suppress(*UNREADABLE):
        families = await asyncio.to_thread(sub_jobs_by_parent, control.store, plan.batch)
        for key in _below(anew, families):
            if await control.newest(key) is None:
                await asyncio.to_thread(_end, JobArchive.of(control.store, key))


def _below(parents: Sequence[str], families: Mapping[str, Sequence[JobKey]]) -> Iterator[JobKey]:
    for parent in parents:
        for key in families.get(parent, ()):
            yield key
            yield from _below([key.job], families)


def _end(archive: JobArchive) -> None:
    with suppress(*UNREADABLE):
        if not is_open(archive):
            return
        run = lost_run(archive)
        begun = archive.last_turn(run)
        # The last turn may have no reply yet.
        turns = [turn for turn in (begun, begun - 1) if turn > 0]
        step = next(filter(None, (archive.find_step(run, turn) for turn in turns)), None)
        told = spent(archive)
        usage = {name: told[name] for name in ("prompt", "completion", "cache_read", "cache_write")}
        end = NewEnd(
            run=run,
            turn=max(begun, 1),
            parent=step.ref if step is not None else None,
            status=JobStatus.CANCELLED,
            reason=REASON,
            usage=Usage(**usage, reported=not told["unreported"]),
            cost_usd=told["cost_usd"],
            ended_at=datetime.now(UTC).isoformat(),
        )
        archive.write_end(end, signer_of())
        archive.forget()
