"""Which archive a command reads."""

from __future__ import annotations

import os

from runtime.archive.stores import ObjectStore, open_existing, open_store, open_to_read
from runtime.base.home import state_home

VARIABLE = "HOLDFAST_STORE"


def named(url: str | None) -> str | None:
    """The archive's address where one is named: the given one, also an empty one, which is an error
    as any other that names none; else ``HOLDFAST_STORE``'s.
    """
    return url if url is not None else os.environ.get(VARIABLE) or None


def address_of(url: str | None) -> str:
    """The archive's address: that which is ``named``, else the directory beside the embedded
    server.
    """
    address = named(url)
    return address if address is not None else str(state_home().archive)


def archive_of(url: str | None) -> ObjectStore:
    """The archive at that address."""
    return open_store(address_of(url))


def archive_to_control(url: str | None) -> ObjectStore:
    """The archive at that address for a command that asks a server to act: nothing is written
    where there is one, so that jobs can be paused and ended while the disk is full.
    """
    return open_to_read(address_of(url))


def archive_to_read(url: str | None) -> ObjectStore:
    """The same archive for a command that writes nothing: one that is named must be there, and may
    be read-only.
    """
    if named(url) is None:
        # The state directory's own may not be made yet: then there are no jobs.
        return archive_to_control(None)
    return open_existing(address_of(url))
