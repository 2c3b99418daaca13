"""Which archive a command reads."""

from __future__ import annotations

import os

from runtime.archive.stores import ObjectStore, open_store
from runtime.home import state_home

VARIABLE = "HOLDFAST_STORE"


def archive_of(url: str | None) -> ObjectStore:
    """The archive: the given one, else ``HOLDFAST_STORE``'s, else the directory beside the embedded server."""
    return open_store(url or os.environ.get(VARIABLE) or str(state_home().archive))
