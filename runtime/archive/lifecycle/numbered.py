"""Objects that are numbered in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable

from runtime.archive.stores.protocol import ObjectStore


def put_next(store: ObjectStore, folder: str, data: Callable[[str], bytes]) -> str:
    """Write the next object of a folder, made for its key; the key."""
    number = len(list(store.list(folder))) + 1
    # Another process may write the same number at the same time: who comes second takes the next.
    while not store.put_if_absent(key := f"{folder}{number:04d}", data(key)):
        number += 1
    return key
