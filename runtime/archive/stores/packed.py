"""A store in which the objects of many turns stand in one: a *pack*.

::

    BATCH/JOB/packs/RUN/0000032       the objects of the turns 32 to 63 of a run

A pack (``pack_form.py``) is written once, when the turns are over, and then the objects that it
holds are removed from their own places. A file system gives each file whole blocks, so a turn takes
a small part of what it took; and what turns have in common is stored once.

Whoever reads through this store sees each object at its own key, wherever it stands. What a pack
holds counts before an object that stands at its own key: a writer that was late may have put
another one there, and is told that it lost.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.container import WIRE, is_whole, unseal
from runtime.archive.dictionaries import WIRE_DICTIONARY
from runtime.archive.stores.pack_form import FEWEST, Pack, packed
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.stores.removal import Discarding, removing
from runtime.archive.stores.tries import Forgetting
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.failpoints import failpoint

_REMEMBERED_BYTES = 8 << 20
_SHARED = "_holdfast/"
_TURNS = re.compile(
    r"(?P<job>[^/]+/[^/]+)/turns/(?P<run>[^/]+)/((?P<hundred>\d{5})/((?P<turn>\d{7})\.)?)?"
)

_ALL_TURNS = re.compile(r"([^/]+/[^/]+)/turns/")


class PackedStore:
    """The objects of ``inner``, in packs or not."""

    def __init__(self, inner: Discarding) -> None:
        self.inner = inner
        self._packs: OrderedDict[str, Pack] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``.

        Raises:
            ObjectCorrupt: if nobody can tell, since the pack of its turn cannot be read.
        """
        written = self.inner.put_if_absent(key, data)
        try:
            # Afterwards: looked at before, the object could be packed in between.
            if not written or not self._is_packed(key):
                return written
        except ObjectCorrupt:
            self.inner.discard(key)
            raise
        self.inner.discard(key)
        return False

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``.

        Raises:
            ObjectCorrupt: also if it is not at its own place, and its pack cannot be read.
        """
        place = keys.parse_turn_key(key)
        if place is None:
            return self.inner.get(key)
        pack_key = keys.pack_key(place.prefix, place.turn)
        pack = self._remembered(pack_key)
        # One that cannot be read there may stand at its own place.
        with suppress(ObjectCorrupt):
            if pack is not None and (data := pack.get(key, _Attempts(self))) is not None:
                return data
        return self._read(key, pack_key)

    def list(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``. A pack that is not what was written is listed itself, too."""
        scope = _scope(prefix)
        if scope is None:
            yield from self.inner.list(prefix)
            return
        # Before the packs: what is packed in between is found in one of the two.
        there = list(self.inner.list(prefix))
        listed = {key for key in there if keys.packed_prefix(key) is None}
        for pack_key in self._pack_keys(scope, there):
            listed.update(key for key in self._told(pack_key) if key.startswith(prefix))
        yield from sorted(listed)

    def folders(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        folders = self.inner.folders(prefix)
        if (job := _ALL_TURNS.fullmatch(prefix)) is None:
            return folders
        # Of a run that has ended all may be in packs.
        return iter(sorted({*folders, *self.inner.folders(f"{job[1]}/packs/")}))

    def remove(self, key: str) -> None:
        """See ``Removing``. A pack goes with the first object of it that is removed: those that
        point to others go first, and all of a job goes.
        """
        place = keys.parse_turn_key(key)
        # A pack that cannot be read is listed, and so removed, itself.
        with suppress(ObjectCorrupt):
            if place is not None and self._is_packed(key):
                self._remove(keys.pack_key(place.prefix, place.turn))
        self._remove(key)

    def remove_try(self, key: str) -> None:
        """See ``Forgetting``."""
        if isinstance(self.inner, Forgetting):
            self.inner.remove_try(key)

    def pack(self, prefix: str, turn: int) -> bool:
        """Pack the interval of ``turn`` of the run whose turns stand under ``prefix``, which must
        be over. What a process that was killed has left is brought to its end.

        Returns whether anything was left to do.

        Raises:
            ArchiveError: if the store cannot be read or written.
            ObjectCorrupt: if there is a pack, and it cannot be read.
        """
        pack_key = keys.pack_key(prefix, turn)
        alone = self._alone(prefix, turn)
        if not alone:
            return False
        # As it is there now: what is remembered may be gone.
        self._forget(pack_key)
        pack = self._pack(pack_key)
        if pack is None:
            if len(alone) < FEWEST:
                return False
            try:
                made = packed(pack_key, self._all(alone), _Attempts(self._anew()))
            except ObjectMissing:
                # Another process packs them, too.
                return False
            if made is None:
                return False
            data = made
        elif pack.whole and any(key in pack.names for key in alone):
            data = self.inner.get(pack_key)
        else:
            return False
        failpoint("archive.pack.before_put")
        # Also where it is there: who put it may not have made its name durable, and died.
        self.inner.put_if_absent(pack_key, data)
        failpoint("archive.pack.after_put")
        if pack is None:
            # Read back before anything goes, also where another process was first.
            pack = self._pack(pack_key)
        done, attempts = False, _Attempts(self._anew())
        for key in alone:
            # Each is looked at as it will be read, while it stands at its own place, too.
            if pack is not None and pack.whole and pack.is_sound(key, attempts):
                self.inner.discard(key)
                failpoint("archive.pack.mid_removal")
                done = True
        return done

    def __str__(self) -> str:
        return str(self.inner)

    def _told(self, pack_key: str) -> Iterator[str]:
        """The keys that a listing has of a pack."""
        try:
            pack = self._pack(pack_key)
        except ObjectCorrupt:
            yield pack_key
            return
        if pack is not None:
            yield from pack.names
            if not pack.whole:
                yield pack_key

    def _alone(self, prefix: str, turn: int) -> tuple[str, ...]:
        """What stands at its own place of an interval."""
        first = turn // keys.INTERVAL * keys.INTERVAL
        turns = range(first, first + keys.INTERVAL)
        return tuple(
            key
            for hundred in sorted({turns[0] // 100, turns[-1] // 100})
            for key in self.inner.list(f"{prefix}{hundred:05d}/")
            if (place := keys.parse_turn_key(key)) is not None and place.turn in turns
        )

    def _all(self, alone: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for key in alone:
            # What is damaged stays where it is, and is told of there.
            with suppress(ObjectCorrupt):
                yield key, self.inner.get(key)

    def _anew(self) -> PackedStore:
        """The store as it is now: what goes from its own place must not lean on what is gone."""
        return PackedStore(self.inner)

    def _read(self, key: str, pack_key: str) -> bytes:
        missing: ObjectMissing | None = None
        data = b""
        try:
            data = self.inner.get(key)
        except ObjectMissing as error:
            missing = error
        # After the object's own place: what is packed in between is found in one of the two.
        try:
            pack = self._pack(pack_key)
            there = None if pack is None else pack.get(key, _Attempts(self))
        except ObjectCorrupt as error:
            if missing is not None:
                raise ObjectCorrupt(f"{key}: is not at its own place, and {error}") from None
            return data
        if missing is not None:
            if there is None:
                raise missing
            return there
        # One that is damaged in its pack, and whole beside it, was put back, or never went.
        if there is None or (not is_whole(key, there) and is_whole(key, data)):
            return data
        return there

    def pack_of(self, key: str) -> Pack | None:
        """The pack of an object's turn, if there is one.

        Raises:
            ObjectCorrupt: if it cannot be taken apart.
        """
        place = keys.parse_turn_key(key)
        return None if place is None else self._pack(keys.pack_key(place.prefix, place.turn))

    def _is_packed(self, key: str) -> bool:
        """Whether a pack holds the object of a key.

        Raises:
            ObjectCorrupt: if its pack cannot be taken apart.
        """
        pack = self.pack_of(key)
        return pack is not None and key in pack.names

    def _pack_keys(self, scope: _Scope, there: Iterable[str]) -> Iterator[str]:
        """Where packs with objects of a scope are, or may be."""
        if scope.turns is not None and len(scope.turns) == 1:
            yield keys.pack_key(f"{scope.job}/turns/{scope.run}/", scope.turns[0])
            return
        jobs = {keys.job_prefix_in(key) for key in there} if scope.job is None else {scope.job}
        for job in sorted(jobs):
            folder = keys.packs_prefix(job, scope.run) if scope.run else f"{job}/packs/"
            for key in self.inner.list(folder):
                first = int(key.rpartition("/")[2]) if keys.packed_prefix(key) else None
                if first is not None and scope.touches(first):
                    yield key

    def _pack(self, pack_key: str) -> Pack | None:
        """A pack, or None.

        Raises:
            ObjectCorrupt: if it cannot be taken apart.
        """
        pack = self._remembered(pack_key)
        if pack is None:
            try:
                data = self.inner.get(pack_key)
            except ObjectMissing:
                return None
            pack = Pack(pack_key, data)
            # A damaged one may be replaced by a good copy.
            if pack.whole:
                self._remember(pack_key, pack)
        return pack

    def _remembered(self, pack_key: str) -> Pack | None:
        with self._lock:
            if pack_key in self._packs:
                self._packs.move_to_end(pack_key)
            return self._packs.get(pack_key)

    def _remember(self, pack_key: str, pack: Pack) -> None:
        with self._lock:
            self._drop(pack_key)
            self._packs[pack_key] = pack
            self._bytes += pack.size
            while self._bytes > _REMEMBERED_BYTES and len(self._packs) > 1:
                _, old = self._packs.popitem(last=False)
                self._bytes -= old.size

    def _forget(self, pack_key: str) -> None:
        with self._lock:
            self._drop(pack_key)

    def _drop(self, pack_key: str) -> None:
        old = self._packs.pop(pack_key, None)
        self._bytes -= old.size if old is not None else 0

    def _remove(self, key: str) -> None:
        removing(self.inner).remove(key)
        self._forget(key)


class _Attempts:
    """The attempts of a store, for its packs."""

    def __init__(self, store: PackedStore) -> None:
        self._store = store

    def text(self, key: str) -> bytes:
        """See ``Attempts``."""
        # One that cannot be read in its pack may stand at its own place.
        with suppress(ObjectCorrupt):
            if (text := self._packed_text(key)) is not None:
                return text
        try:
            data = self._store.inner.get(key)
        except ObjectMissing:
            # It may have been packed in between.
            if (text := self._packed_text(key)) is not None:
                return text
            raise
        return unseal(key, data, "attempt").frame(WIRE, WIRE_DICTIONARY)

    def header(self, key: str) -> Mapping[str, Any]:
        """See ``Attempts``."""
        pack = self._store.pack_of(key)
        told = None if pack is None else pack.header(key)
        return unseal(key, self._store.get(key), "attempt").header if told is None else told

    def _packed_text(self, key: str) -> bytes | None:
        pack = self._store.pack_of(key)
        return None if pack is None else pack.text(key)


def unremembered(store: ObjectStore) -> ObjectStore:
    """The store as it is now: packs that were read before are read again."""
    return PackedStore(store.inner) if isinstance(store, PackedStore) else store


@dataclass(frozen=True)
class _Scope:
    """Of what keys with a prefix may be: of a job, a run as in its key, and turns; None where they
    may be of any.
    """

    job: str | None = None
    run: str | None = None
    turns: range | None = None

    def touches(self, first: int) -> bool:
        """Whether an interval has any of the turns."""
        return self.turns is None or (
            first < self.turns.stop and self.turns.start < first + keys.INTERVAL
        )


def _scope(prefix: str) -> _Scope | None:
    """The scope of keys with a prefix; None if none of them can be in a pack."""
    if prefix.startswith(_SHARED):
        return None
    if place := _TURNS.match(prefix):
        first, count = (place["turn"], 1) if place["turn"] else (place["hundred"], 100)
        start = int(first or 0) * count
        return _Scope(place["job"], place["run"], range(start, start + count) if first else None)
    if prefix.count("/") < 2:
        return _Scope()
    folder = prefix.split("/")[2]
    here = any(one.startswith(folder) for one in ("packs", "turns"))
    return _Scope(keys.job_prefix_in(prefix)) if here else None
