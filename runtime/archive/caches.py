"""What this process remembers of each store, so that a turn reads nothing that the turn before
wrote.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from runtime.archive.container import ArchivedObject
from runtime.archive.keys import job_prefix_in
from runtime.archive.layouts import Layout
from runtime.archive.nodes import NodeStates
from runtime.archive.requests import Request, RequestCache, RequestReader
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.open_jobs import open_jobs
from runtime.projection.segments import Segment

V = TypeVar("V")

_ATTEMPT_BYTES = 2 << 20
"""Those of some hundreds of turns of a kilobyte."""


class Recent(Generic[V]):
    """The values used last, at most ``most`` of them, or as many as have so much ``size``
    together; safe between threads.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most, self._size, self._taken = most, size, 0
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
            self._drop(key)
            self._values[key] = value
            self._taken += self._size(value)
            while self._taken > self._most:
                self._drop(next(iter(self._values)))

    def take(self, key: str) -> V | None:
        """The value, which is the caller's alone from now on; or None."""
        with self._lock:
            return self._drop(key)

    def forget(self, key: str) -> None:
        """Forget a value, if it is remembered."""
        self.take(key)

    def _drop(self, key: str) -> V | None:
        value = self._values.pop(key, None)
        self._taken -= self._size(value) if value is not None else 0
        return value


class RecentOfJobs(Generic[V]):
    """The values used last of each job, at most ``each`` of them (None: all), by keys of its
    objects; of the ``jobs`` jobs used last. Safe between threads.

    So no job pushes out what the next turn of another needs, and with ``each`` a long one keeps no
    more than a short one.
    """

    def __init__(self, each: int | None, jobs: int | None = None) -> None:
        self._each = each
        self._most = open_jobs() if jobs is None else jobs
        self._jobs: OrderedDict[str, OrderedDict[str, V]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> V | None:
        """The value, or None."""
        with self._lock:
            values = self._jobs.get(prefix := job_prefix_in(key))
            if values is None or key not in values:
                return None
            self._jobs.move_to_end(prefix)
            values.move_to_end(key)
            return values[key]

    def put(self, key: str, value: V) -> None:
        """Remember a value."""
        with self._lock:
            values = self._jobs.setdefault(prefix := job_prefix_in(key), OrderedDict())
            self._jobs.move_to_end(prefix)
            values[key] = value
            values.move_to_end(key)
            if self._each is not None and len(values) > self._each:
                values.popitem(last=False)
            if len(self._jobs) > self._most:
                self._jobs.popitem(last=False)

    def forget(self, job: str) -> None:
        """Forget what is remembered of the job with this prefix."""
        with self._lock:
            self._jobs.pop(job, None)


class Caches:
    """Immutable things by their keys: what these name never changes, so nothing here can be out of
    date.

    ``named`` are side runs' objects that a step of theirs names, and the starts of those that are
    done.
    """

    def __init__(self) -> None:
        self.requests = RequestCache()
        # Of a request that is put together, for those of the turns beside it: they are made of
        # much the same. A reader goes through some jobs at a time, and no worker reads all of its.
        self.attempts: Recent[ArchivedObject] = Recent(_ATTEMPT_BYTES, lambda one: one.size)
        # A turn needs its own and its parent's; summaries are calls beside it.
        self.layouts: RecentOfJobs[Layout] = RecentOfJobs(4)
        self.replies: RecentOfJobs[Segment] = RecentOfJobs(4)
        self.nodes: RecentOfJobs[NodeStates] = RecentOfJobs(4)
        self.objects: RecentOfJobs[ArchivedObject] = RecentOfJobs(32)
        # All of a job's: a turn goes through the runs that its own comes after, and through what
        # lies beside it.
        self.starts: RecentOfJobs[Mapping[str, Any]] = RecentOfJobs(None)
        self.named: RecentOfJobs[bool] = RecentOfJobs(None)

    def request(self, store: ObjectStore, key: str) -> Request:
        """The request of the attempt at a key, put together from the store if it is not in
        memory.

        Raises:
            ObjectMissing, ObjectCorrupt: see ``RequestReader``.
        """
        request = self.requests.get(key)
        if request is None:
            request = RequestReader(store.get, _Attempts(self)).request(key)
            self.requests.put(request)
        return request

    def forget(self, job: str) -> None:
        """Forget the job with this prefix, which has ended: the memory is for those that go on."""
        kept = (self.layouts, self.replies, self.nodes, self.objects, self.starts, self.named)
        for each in kept:
            each.forget(job)
        self.requests.forget(job)


class _Attempts:
    """The attempts' objects among what is remembered."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def get(self, key: str) -> ArchivedObject | None:
        """See ``requests.Attempts``."""
        archived = self._caches.attempts.get(key)
        if archived is None:
            archived = self._caches.objects.get(key)
            # One of another kind, which somebody put there, is read again, which tells of it.
            if archived is None or archived.header["kind"] != "attempt":
                return None
            self.put(key, archived)
        return archived

    def put(self, key: str, value: ArchivedObject) -> None:
        """See ``requests.Attempts``."""
        self._caches.attempts.put(key, value)


# By the store, weakly: a test or a command that opens a store of its own leaves nothing here.
_all: WeakKeyDictionary[Any, Caches] = WeakKeyDictionary()
_all_lock = Lock()


def caches_of(store: ObjectStore) -> Caches:
    """The caches that all archives on this store share."""
    with _all_lock:
        return _all.setdefault(store, Caches())
