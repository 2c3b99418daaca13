"""What became of telling others that a job or a batch had ended: kept beside the jobs, since it is
no part of what they did.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress

from runtime.archive import keys
from runtime.archive.reading import read_ahead
from runtime.archive.references import SHARED
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import Value

FOLDER = f"{SHARED}notices/"


class Notice(Value):
    """That somebody was told, or could not be, after so many ``tries``.

    ``key`` is the idempotency key; ``job`` is empty for a batch's end.
    """

    key: str
    batch: str
    job: str = ""
    event: str
    to: str
    heard: bool
    error: str = ""
    tries: int = 1
    at: str


def notice_key(batch: str, key: str) -> str:
    """Where the notice of an idempotency key is."""
    return f"{FOLDER}{keys.name(batch)}/{hashlib.sha256(key.encode()).hexdigest()}"


def write_notice(store: ObjectStore, notice: Notice) -> None:
    """Keep a notice; the first one of its key stays."""
    data = canonical_json(notice.model_dump(mode="json"))
    store.put_if_absent(notice_key(notice.batch, notice.key), data)


def find_notice(store: ObjectStore, batch: str, key: str) -> Notice | None:
    """The notice of a key, None if there is none.

    Raises:
        ObjectCorrupt: if what is there is none.
    """
    place = notice_key(batch, key)
    try:
        return notice_in(place, store.get(place))
    except ObjectMissing:
        return None


def notices(store: ObjectStore, batch: str, unreadable: list[str]) -> Iterator[Notice]:
    """Those of a batch and its jobs; ``unreadable`` gets what is wrong with others."""
    return (notice for _, notice in notices_by_key(store, batch, unreadable))


def notices_by_key(
    store: ObjectStore, batch: str, unreadable: list[str]
) -> Iterator[tuple[str, Notice]]:
    """``notices``, each with where it is."""

    def look(key: str) -> tuple[str, Notice | ObjectCorrupt | None]:
        # Another process may take it meanwhile, with its job.
        with suppress(ObjectMissing):
            try:
                return key, notice_in(key, store.get(key))
            except ObjectCorrupt as error:
                return key, error
        return key, None

    for key, notice in read_ahead(store.list(f"{FOLDER}{keys.name(batch)}/"), look):
        if isinstance(notice, ObjectCorrupt):
            unreadable.append(str(notice))
        elif notice is not None:
            yield key, notice


def notice_in(key: str, data: bytes) -> Notice:
    """The notice that is archived as ``data`` under ``key``.

    Raises:
        ObjectCorrupt: if it is none.
    """
    try:
        return Notice.model_validate(json.loads(data))
    except (ValueError, RecursionError):
        raise ObjectCorrupt(f"{key}: is no notice of an end") from None
