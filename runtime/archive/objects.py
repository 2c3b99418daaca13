"""Sealed objects on a store: written if absent, read, and remembered, since they never change."""

from __future__ import annotations

from collections import deque

from runtime.archive.caches import caches_of
from runtime.archive.container import ArchivedObject, Part, header, referred, seal, sealed
from runtime.archive.forms import Form, opened
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.base.values import StepRef

_READ_ANEW = frozenset({"checkpoint", "definition"})
"""Kinds that are not remembered: one is large, and the other's numbers begin anew where a job was
deleted, of which another process hears nothing.
"""


class Objects:
    """The objects of all archives on ``store``.

    Methods raise ``ObjectCorrupt`` and ``ArchiveError`` as a ``JobArchive``'s do.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.caches = caches_of(store)

    def put(
        self, key: str, form: Form, parts: tuple[Part, ...] = ()
    ) -> tuple[bool, ArchivedObject]:
        """Write, or find out what is there.

        Returns whether it was written, and the object that is there now.
        """
        kind = form.kind
        text = header(form.header(), parts)
        data, _ = seal(key, text, parts)
        failpoint(f"archive.{kind}.before_put")
        written = self.store.put_if_absent(key, data)
        failpoint(f"archive.{kind}.after_put")
        # What is there counts, also where it differs from ours: the caller goes on with the first
        # writer's.
        if not written:
            return False, self.get(key, kind)
        return True, self._remembered(sealed(key, text, data))

    def get(self, key: str, kind: str) -> ArchivedObject:
        """The object of a key, of the kind that it must have.

        Raises:
            ObjectMissing: if there is none.
        """
        archived = self.caches.objects.get(key)
        # Of another kind than was asked for: read again, which tells of it.
        if archived is None or archived.header["kind"] != kind:
            archived = self._remembered(opened(key, self.store.get(key), kind))
        return archived

    def step(self, ref: StepRef) -> ArchivedObject:
        """The step at an address, its digest checked."""
        return referred(self.get(ref.key, "step"), ref.digest)

    def last(self, prefix: str, kind: str) -> ArchivedObject | None:
        """The last object of those under ``prefix``, None if there is none."""
        # Listings stream, and only the last is wanted.
        last = deque(self.store.list(prefix), maxlen=1)
        try:
            return self.get(last[0], kind) if last else None
        except ObjectMissing:
            # Deleted with its job since it was listed: what the next look says, too.
            if last[0] in self.store.list(prefix):
                raise
            return None

    def _remembered(self, archived: ArchivedObject) -> ArchivedObject:
        if archived.header["kind"] not in _READ_ANEW:
            self.caches.objects.put(archived.key, archived)
        return archived
