"""When the turns of a run are packed: once a later keyframe, or the run's end, is archived."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ArchiveError

_log = logging.getLogger(__name__)


def pack_before(store: ObjectStore, prefix: str, turn: int, *, every: bool = False) -> None:
    """Pack the intervals before that of ``turn`` of the run whose turns stand under ``prefix``,
    from the last back to one with which nothing is left to do, or ``every`` one; nothing in a store
    without packs.

    It only saves room: what cannot be packed now stays as it is, and is tried again later.
    """
    side = keys.is_side_run(unquote(prefix.rstrip("/").rpartition("/")[2]))
    pack = _packing(store)
    if side or pack is None:
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


def pack_job(store: ObjectStore, job: str) -> None:
    """Pack each run of a job: all of those that have ended, of others what is before their last
    keyframe.
    """
    if _packing(store) is None:
        return
    ended = {key.rpartition("/")[2] for key in store.list(f"{job}/ends/")}
    for run in store.folders(f"{job}/turns/"):
        prefix = f"{job}/turns/{run}/"
        turns = list(filter(None, map(keys.parse_turn_key, store.list(prefix))))
        if run in ended:
            pack_ended(store, prefix, max((place.turn for place in turns), default=0))
        else:
            steps = (place.turn for place in turns if place.kind == "step")
            pack_before(store, prefix, max(steps, default=0), every=True)


def _packing(store: ObjectStore) -> Callable[[str, int], bool] | None:
    """``PackedStore.pack``, of a store that has it."""
    # By the name: a store that is wrapped for traces passes on what it does not know.
    pack: Callable[[str, int], bool] | None = getattr(store, "pack", None)
    return pack
