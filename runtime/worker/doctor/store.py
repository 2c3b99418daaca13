"""Whether the archive's store keeps its promises: by writing, reading, and being refused."""

from __future__ import annotations

import secrets
from pathlib import Path

from runtime.archive.stores import ObjectStore, folder_of, open_store
from runtime.archive.stores.tries import TRIES, Forgetting
from runtime.base.errors import ArchiveError, InputError
from runtime.worker.doctor.finding import Finding, failed, good, worrying

_ADVICE = (
    "name a directory or s3://BUCKET/PREFIX with --store or HOLDFAST_STORE, and give this process"
    " the right to read, list and write objects there"
)


def store(url: str) -> tuple[Finding, Path | None]:
    """What was found of the store at ``url``, and its directory if it is one of this machine."""
    try:
        opened = open_store(url)
        finding = try_store(opened)
    except (ArchiveError, InputError) as error:
        return failed("store", str(error), _ADVICE), None
    return finding, folder_of(opened)


def try_store(store: ObjectStore) -> Finding:
    """Write an object, read it, be refused to overwrite it, list it, and remove it.

    Raises:
        ArchiveError: if the store cannot be written or read.
    """
    key, text = f"{TRIES}/{secrets.token_hex(8)}", secrets.token_bytes(32)
    if not store.put_if_absent(key, text):
        return failed("store", f"{store} says that a new object was there", "use another store")
    if store.get(key) != text:
        return failed("store", f"{store} gave other bytes than were written", "use another store")
    # Other bytes: a store may take the same ones a second time and break no promise.
    if store.put_if_absent(key, text + b" "):
        return failed(
            "store",
            f"{store} overwrites objects: it ignores conditional writes (If-None-Match)",
            "use one that honours them",
        )
    if key not in set(store.list(key)):
        return worrying("store", f"{store} does not list a new object", "expect stale listings")
    if isinstance(store, Forgetting):
        store.remove_try(key)
    return good("store", f"{store}: wrote, read, was refused to overwrite, listed")
