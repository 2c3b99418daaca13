"""A store that keeps one writer waiting, so that a test has something happen meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runtime.archive.stores import ObjectStore
from tests.eventually import SECONDS


class HeldStore:
    """``store``, whose first object with a key that is ``held`` is not written until it is let
    go.
    """

    def __init__(self, store: ObjectStore, held: Callable[[str], bool]) -> None:
        self._store, self._held = store, held
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.get, self.list, self.folders = store.get, store.list, store.folders

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object, unless there is one; see ``ObjectStore``."""
        if self._held(key) and not self.reached.is_set():
            self.reached.set()
            self.let_go.wait(SECONDS)
        return self._store.put_if_absent(key, data)

    def __str__(self) -> str:
        return str(self._store)
