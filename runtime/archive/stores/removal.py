"""Removing objects, which deleting a job does, and packing its turns, and nothing else; and what
keeps them.
"""

from __future__ import annotations

from datetime import datetime
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


@runtime_checkable
class RetainingStore(Protocol):
    """A store that can say until when an object can neither be overwritten nor removed."""

    def retained_until(self, key: str) -> datetime | None:
        """When the object's retention ends; None if it has none."""
        ...


class Discarding(ObjectStore, Protocol):
    """A store from which copies of objects that stand elsewhere can be removed."""

    def discard(self, key: str) -> None:
        """Remove an object, not durably: after a crash it may be there again.

        Raises:
            ArchiveError: if the store may not be written.
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
