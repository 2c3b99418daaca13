"""When the turns of a run are packed: once a later keyframe is archived, or the run's end; or the
first step of a run that goes on from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.caches import RecentOfJobs
from runtime.archive.lineage import Lineage
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ArchiveError

_log = logging.getLogger(__name__)


def pack_before(store: ObjectStore, prefix: str, turn: int, *, every: bool = False) -> None:
    """Pack the intervals before that of ``turn`` of the run whose turns stand under ``prefix``,
    from the last back to one with which nothing is left to do, or ``every`` one; nothing in a store
    without packs.

    It only saves room: what cannot be packed now stays as it is, and is tried again later.
    """
    pack = _packing(store)
    if _is_side(prefix) or pack is None:
        return
    for number in reversed(range(turn // keys.INTERVAL)):
        first = number * keys.INTERVAL
        try:
            if not pack(prefix, first) and not every:
                return
        except ArchiveError as error:
            _log.warning("turns from %d of %s are not packed: %s", first, prefix, error)
            if not every:
                return


def pack_ended(store: ObjectStore, prefix: str, turn: int) -> None:
    """Pack all intervals of a run that ended after ``turn``, its last one too.

    What was broken off before, by a kill or a full disk, is tried once more.
    """
    pack_before(store, prefix, turn + keys.INTERVAL, every=True)


def pack_left(store: ObjectStore, prefix: str, parent: str) -> None:
    """Pack the run that the one whose turns stand under ``prefix`` goes on from, by its first step,
    whose parent has the key ``parent``: it has no end of its own.

    A side run takes nothing over, nor does a fork, whose parent is another job's.
    """
    step, job = keys.parse_turn_key(parent), prefix.rstrip("/").rpartition("/turns/")[0]
    if step is not None and step.job == job and step.prefix != prefix and not _is_side(prefix):
        pack_ended(store, step.prefix, step.turn)


def pack_job(store: ObjectStore, job: str) -> None:
    """Pack each run of a job: all of those that have ended or that another goes on from, of others
    what is before their last keyframe.
    """
    if _packing(store) is None:
        return
    ended = {f"{job}/turns/{key.rpartition('/')[2]}/" for key in store.list(f"{job}/ends/")}
    runs = {
        prefix: list(filter(None, map(keys.parse_turn_key, store.list(prefix))))
        for prefix in (f"{job}/turns/{run}/" for run in store.folders(f"{job}/turns/"))
    }
    ended |= {left for prefix in runs for left in _left_before(store, job, prefix)}
    for prefix, places in runs.items():
        if prefix in ended:
            pack_ended(store, prefix, max((place.turn for place in places), default=0))
        else:
            steps = (place.turn for place in places if place.kind == "step")
            pack_before(store, prefix, max(steps, default=0), every=True)


def _left_before(store: ObjectStore, job: str, prefix: str) -> Iterator[str]:
    """The prefix of the job's run that another goes on from, if there is one; what cannot be read
    is told by ``verify``.
    """
    with suppress(ArchiveError, TypeError, KeyError):
        *before, span = Lineage(store, job, RecentOfJobs(None)).spans(_run(prefix))
        if before and before[-1].job == span.job and not _is_side(prefix):
            yield before[-1].prefix


def _is_side(prefix: str) -> bool:
    return keys.is_side_run(_run(prefix))


def _run(prefix: str) -> str:
    return unquote(prefix.rstrip("/").rpartition("/")[2])


def _packing(store: ObjectStore) -> Callable[[str, int], bool] | None:
    """``PackedStore.pack``, of a store that has it."""
    # By the name: a store that is wrapped for traces passes on what it does not know.
    pack: Callable[[str, int], bool] | None = getattr(store, "pack", None)
    return pack
