"""Replays in the archive: what was ordered, before the reset that makes the run, and which run it
became.

::

    BATCH/JOB/replays/ID          the order
    BATCH/JOB/replays/ID.run      the run that claimed it

The run's start names the claim, and the claim the order, so the chain covers both.
"""

from __future__ import annotations

from typing import Any

from runtime.archive.forms import ClaimForm, ReplayForm
from runtime.archive.gaps import UNREADABLE, Gap, named_gap
from runtime.archive.job import JobArchive
from runtime.archive.keys import CLAIM, name
from runtime.base.errors import ArchiveError, ObjectMissing
from runtime.base.values import Value


class Replay(Value):
    """An ordered replay. ``run`` is the run that it became, None before that run asked for it."""

    id: str
    order: dict[str, Any]
    ordered_at: str
    run: str | None


def write_replay(
    archive: JobArchive, identity: str, order: dict[str, Any], ordered_at: str
) -> None:
    """Archive an order under an ``identity`` of its own.

    Raises:
        ArchiveError: if the identity is taken.
    """
    form = ReplayForm(id=identity, order=order, ordered_at=ordered_at)
    if not archive.objects.put(_key(archive, identity), form)[0]:
        raise ArchiveError(f"{_key(archive, identity)} is there already")


def claim_replay(archive: JobArchive, identity: str, run: str) -> dict[str, Any] | None:
    """The order, claimed for ``run``; None if there is no such order, or another run has claimed
    it.
    """
    try:
        ordered = archive.objects.get(_key(archive, identity), "replay")
    except ObjectMissing:
        return None
    form = ClaimForm(id=identity, run=run, order=ordered.digest)
    _, claim = archive.objects.put(ordered.key + CLAIM, form)
    # The first claim stands: this run's, in an earlier try, or another's.
    return dict(ordered.header["order"]) if claim.header["run"] == run else None


def order_begun_by(archive: JobArchive) -> str:
    """The order by which a job was begun last. One by which it went on out of its own archive, as
    it was lost, began nothing. Empty if the archive does not say.

    Raises:
        ObjectCorrupt: if a definition or such an order is damaged.
    """
    for key in reversed(list(archive.store.list(f"{archive.prefix}/definition/"))):
        begun_by = str(archive.objects.get(key, "definition").header.get("order", ""))
        if not begun_by:
            return ""
        try:
            ordered = archive.objects.get(_key(archive, begun_by), "replay")
        except ObjectMissing:
            return begun_by
        source = ordered.header["order"].get("source") or {}
        if (source.get("batch"), source.get("job")) != (archive.job.batch, archive.job.job):
            return begun_by
    return ""


def has_replays(archive: JobArchive) -> bool:
    """Whether a replay of a job was ordered; each fork begins with one."""
    return next(archive.store.list(f"{archive.prefix}/replays/"), None) is not None


def replays(archive: JobArchive) -> list[Replay]:
    """The replays of a job, by the time of their order.

    Raises:
        ObjectCorrupt: if an order or a claim is damaged.
    """
    ordered = []
    for key in archive.store.list(f"{archive.prefix}/replays/"):
        if not key.endswith(CLAIM):
            form = ReplayForm.read(archive.objects.get(key, "replay"))
            run = _claimant(archive, key + CLAIM)
            ordered.append(
                Replay(id=form.id, order=form.order, ordered_at=form.ordered_at, run=run)
            )
    return sorted(ordered, key=lambda replay: replay.ordered_at)


def claimed_orders(archive: JobArchive, gaps: list[Gap]) -> dict[str, dict[str, Any]]:
    """The orders of the replays that were claimed, by run; nothing of an order that cannot be read.

    What is damaged or gone is put into ``gaps``.
    """
    orders: dict[str, dict[str, Any]] = {}
    for key in archive.store.list(f"{archive.prefix}/replays/"):
        try:
            if key.endswith(CLAIM) and (run := _claimant(archive, key)) is not None:
                orders.setdefault(run, {})
                ordered = archive.objects.get(key.removesuffix(CLAIM), "replay")
                orders[run] = ReplayForm.read(ordered).order
        except UNREADABLE as error:
            gaps.append(named_gap(error))
    return orders


def _claimant(archive: JobArchive, claim: str) -> str | None:
    """The run of a claim, by its key; None if nobody claimed."""
    try:
        return str(archive.objects.get(claim, "claim").header["run"])
    except ObjectMissing:
        return None


def _key(archive: JobArchive, identity: str) -> str:
    return f"{archive.prefix}/replays/{name(identity)}"
