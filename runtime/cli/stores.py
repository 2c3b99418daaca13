"""Which archive a command reads."""

from __future__ import annotations

import os

from runtime.archive.stores import ObjectStore, open_existing, open_store
from runtime.base.home import state_home

VARIABLE = "HOLDFAST_STORE"


def archive_of(url: str | None) -> ObjectStore:
    """The archive: the given one, else ``HOLDFAST_STORE``'s, else the directory beside the embedded
    server.
    """
    return open_store(url or os.environ.get(VARIABLE) or str(state_home().archive))


def archive_to_read(url: str | None) -> ObjectStore:
    """The same archive for a command that writes nothing: one that is named must be there, and may
    be read-only.
    """
    named = url or os.environ.get(VARIABLE)
    # The state directory's own may not be made yet: then there are no jobs.
    return open_existing(named) if named else open_store(str(state_home().archive))
