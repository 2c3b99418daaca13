"""What this process remembers of each store, so that a turn reads nothing that the turn before
wrote.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from runtime.archive.container import ArchivedObject
from runtime.archive.layouts import Layout
from runtime.archive.nodes import NodeStates
from runtime.archive.requests import RequestCache
from runtime.archive.stores.protocol import ObjectStore
from runtime.projection.segments import Segment

V = TypeVar("V")


class Recent(Generic[V]):
    """The values used last, at most ``most`` of them; safe between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> V | None:
        """The value, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: str, value: V) -> None:
        """Remember a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)


class Caches:
    """Immutable things by their keys: objects never change, so nothing here can be out of date.

    ``named`` are side runs' records that a step of theirs names, and the starts of those that are
    done.
    """

    def __init__(self) -> None:
        self.requests = RequestCache()
        self.layouts: Recent[Layout] = Recent(128)
        self.replies: Recent[Segment] = Recent(128)
        self.objects: Recent[ArchivedObject] = Recent(256)
        self.nodes: Recent[NodeStates] = Recent(128)
        self.starts: dict[str, Mapping[str, Any]] = {}
        self.named: set[str] = set()


_all: WeakKeyDictionary[Any, Caches] = WeakKeyDictionary()
_all_lock = Lock()


def caches_of(store: ObjectStore) -> Caches:
    """The caches that all archives on this store share."""
    with _all_lock:
        return _all.setdefault(store, Caches())
