"""Removing objects: what deleting a job does, and nothing else."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import InputError


@runtime_checkable
class Removing(Protocol):
    """A store from which objects can be removed."""

    def remove(self, key: str) -> None:
        """Remove an object durably, with all versions that the store keeps of it; nothing is done
        where there is none.

        Raises:
            ArchiveError: if the store may not be written, or keeps the object for a time.
        """
        ...


def removing(store: ObjectStore) -> Removing:
    """The store, as one from which objects can be removed.

    Raises:
        InputError: if it is none.
    """
    if not isinstance(store, Removing):
        raise InputError(f"nothing can be removed from the archive {store}")
    return store
