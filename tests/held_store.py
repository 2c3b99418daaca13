"""A store that keeps a writer or reader waiting, so that a test has something happen meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runtime.archive.stores import ObjectStore
from tests.eventually import SECONDS


class HeldStore:
    """``store``, whose first object with a key that is ``held`` is not written, or with ``reading``
    not read, until it is let go: by nobody, for who is kept waiting for long may try again.
    """

    def __init__(
        self, store: ObjectStore, held: Callable[[str], bool], *, reading: bool = False
    ) -> None:
        self._store, self._held, self._reading = store, held, reading
        self.reached, self.let_go = threading.Event(), threading.Event()
        self._key: str | None = None
        self.list, self.folders = store.list, store.folders

    def get(self, key: str) -> bytes:
        """Read an object; see ``ObjectStore``."""
        if self._reading:
            self._wait(key)
        return self._store.get(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object, unless there is one; see ``ObjectStore``."""
        if not self._reading:
            self._wait(key)
        return self._store.put_if_absent(key, data)

    def _wait(self, key: str) -> None:
        if self._key is None and self._held(key):
            self._key = key
            self.reached.set()
        if key == self._key:
            self.let_go.wait(SECONDS)

    def __str__(self) -> str:
        return str(self._store)
