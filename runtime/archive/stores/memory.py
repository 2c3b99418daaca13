"""An object store in memory: for tests, and for verifying an export without unpacking it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from runtime.base.errors import ObjectMissing


class MemoryStore:
    """Objects in a dictionary, with the same guarantees as the others but durability."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``."""
        with self._lock:
            if key in self._objects:
                return False
            self._objects[key] = data
            return True

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``."""
        try:
            return self._objects[key]
        except KeyError:
            raise ObjectMissing(f"the archive has no object {key}") from None

    def list(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        with self._lock:
            keys = sorted(k for k in self._objects if k.startswith(prefix))
        return iter(keys)

    def folders(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        rests = (key[len(prefix) :] for key in self.list(prefix))
        return iter(sorted({rest.partition("/")[0] for rest in rests if "/" in rest}))

    def remove(self, key: str) -> None:
        """See ``Removing``."""
        with self._lock:
            self._objects.pop(key, None)

    def discard(self, key: str) -> None:
        """See ``Discarding``."""
        self.remove(key)

    def __str__(self) -> str:
        return "memory"

    def replace(self, key: str, data: bytes | None) -> None:
        """Damage an object (None: delete it), as no store should allow: for tests of ``verify``."""
        with self._lock:
            if data is None:
                del self._objects[key]
            else:
                self._objects[key] = data
