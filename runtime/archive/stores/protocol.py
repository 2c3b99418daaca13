"""The protocol of an object store: all that the archive asks of the world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class ObjectStore(Protocol):
    """Write-once objects under keys such as ``"a/b/c"`` (ASCII).

    Synchronous and safe to share between threads.
    """

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store ``data`` durably. False: the key was taken, and nothing was written.

        Raises:
            ArchiveError: if the store cannot be written; the object may or may not be there
                afterwards, never a part of it.
        """
        ...

    def get(self, key: str) -> bytes:
        """The object's bytes.

        Raises:
            ObjectMissing: if there is none.
            ArchiveError: if the store cannot be read.
        """
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """All keys that start with ``prefix``, in lexicographic order, streaming.

        Folders of which one's name begins with another's (``a/``, ``a-b/``) may come in either
        order: SeaweedFS compares names, AWS whole keys. The archive's keys are made so that this
        does not matter.
        """
        ...

    def folders(self, prefix: str) -> Iterator[str]:
        """The next parts, up to a slash, of the keys under ``prefix`` (empty, or ending in a
        slash), each once and sorted.

        It costs by the number of folders, not of the objects in them.
        """
        ...
