"""Object stores: put if absent, get, list. A directory, S3, or memory."""

from runtime.archive.stores.memory import MemoryStore
from runtime.archive.stores.opening import (
    check_store,
    create_encrypted,
    encrypted_at,
    folder_of,
    is_encrypted,
    open_existing,
    open_store,
    open_to_read,
    overlap,
    unmarked,
)
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.stores.removal import Removing, removing

__all__ = [
    "MemoryStore",
    "ObjectStore",
    "Removing",
    "check_store",
    "create_encrypted",
    "encrypted_at",
    "folder_of",
    "is_encrypted",
    "open_existing",
    "open_store",
    "open_to_read",
    "overlap",
    "removing",
    "unmarked",
]
