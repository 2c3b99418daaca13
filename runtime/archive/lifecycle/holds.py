"""Legal holds: jobs that may not be deleted until somebody says that they may.

::

    _holdfast/holds/BATCH/JOB/0001

Each is a hold or the release of one, by its number, so that who held a job, and who let it go,
stays to be read.
"""

from __future__ import annotations

import json
from typing import Literal

from runtime.archive import keys
from runtime.archive.lifecycle.numbered import put_next
from runtime.archive.references import SHARED
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import JobKey, Value

FOLDER = f"{SHARED}holds/"


class Hold(Value):
    """That a job is held, or no more; by whom, when (ISO 8601, UTC) and why."""

    kind: Literal["hold", "release"] = "hold"
    by: str
    at: str
    reason: str

    @property
    def told(self) -> str:
        """The hold in a few words."""
        return f"legal hold by {self.by} since {self.at}: {self.reason}"


def hold_of(store: ObjectStore, job: str) -> Hold | None:
    """The hold on the job under a prefix, None if there is none.

    Raises:
        ObjectCorrupt: if it cannot be read: what may be held is held.
    """
    listed = list(store.list(f"{FOLDER}{job}/"))
    if not listed:
        return None
    last = hold_in(listed[-1], store.get(listed[-1]))
    return last if last.kind == "hold" else None


def hold_in(key: str, data: bytes) -> Hold:
    """The hold that is archived as ``data`` under ``key``.

    Raises:
        ObjectCorrupt: if it is none.
    """
    try:
        return Hold.model_validate(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ObjectCorrupt(f"{key}: is no legal hold: {error}") from None


def write_hold(store: ObjectStore, job: str, hold: Hold) -> None:
    """Archive the next word on a job's hold."""
    data = canonical_json(hold.model_dump(mode="json"))
    put_next(store, f"{FOLDER}{job}/", lambda _: data)


def held_jobs(store: ObjectStore, unreadable: list[str]) -> dict[JobKey, Hold]:
    """The jobs that are held; ``unreadable`` gets what is wrong with holds that cannot be read."""
    held: dict[JobKey, Hold] = {}
    for job in sorted({key.removeprefix(FOLDER).rpartition("/")[0] for key in store.list(FOLDER)}):
        try:
            hold = hold_of(store, job)
        except ObjectCorrupt as error:
            unreadable.append(str(error))
            continue
        if hold is not None:
            held[keys.job_of(job)] = hold
    return held
