"""The form of a pack: the objects of the turns of an interval, stored together.

::

    header      {"kind": "interval", "objects": {"0000032": ["attempt-001", "step"], ...}}
    0000032     a part a turn:
                  varint n, n bytes    its entries, zstd
                  the rest             the parts of its objects, in their order

Entries are two lines an object: canonical JSON with its ``digest`` and, of each of its parts, the
name and how much is ``stored``; and its header's JSON. The headers of a run look much alike, so the
dictionary is ``HEADER_DICTIONARY`` and, but for the pack's first turn, the first ``_LIKE`` bytes of
the entries of that one.

Parts stand as they were stored. The text that an attempt took over from earlier ones of its job
(``absorbed``) stands with those that wrote it first: ``again`` names these, and their texts are the
dictionary of the part ``wire``, after ``WIRE_DICTIONARY``. They took over nothing themselves, so
none of them is stored so.

An object of format 1, whose digest is over its bytes, stands ``whole``: its one line has the size.
In a pack of format 1 all do: a part each, by their keys below the run's turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from runtime.archive import keys
from runtime.archive.container import (
    HEADER_DICTIONARY,
    WIRE,
    ArchivedObject,
    Part,
    assembled,
    header,
    header_of,
    is_whole,
    said,
    seal,
    unchecked,
    unseal,
)
from runtime.archive.dictionaries import WIRE_DICTIONARY
from runtime.archive.frames import compress, decompress
from runtime.archive.varints import read_varint, varint
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt, ObjectMissing

_MOST_OF_AN_OBJECT = 64 << 10
"""What takes more room in a pack stays where it is: packing it saves none, and each look at its
turn would read it.
"""

FEWEST = 8
"""Objects that are worth a pack: it has two directories of its own, and they take blocks, too."""

_MOST_OF_A_PACK = 2 << 20
"""Bytes of the objects in a pack: what comes after them stays where it is. Whoever reads one of
them reads the pack.
"""

_LIKE = 32 << 10
"""Bytes of the first turn's entries that are the dictionary of the others: part of the form."""

_LEAST_SAVED = 0.25
"""Of the stored bytes of a text: less is not worth that it leans on others."""

_DEEPEST = 8
"""A text that was taken over more often is stored again: what took it over takes long to tell."""

_KIND = "interval"
_FIELDS = {1: {"kind", "parts"}, 2: {"kind", "objects", "parts"}}
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_MALFORMED = (
    ValueError, TypeError, AttributeError, KeyError, IndexError, StopIteration, RecursionError,
)  # fmt: skip
"""What comes of a header, or of entries, that are not of this form."""


class Attempts(Protocol):
    """The attempts of a job, wherever they stand.

    Both raise ``ObjectCorrupt`` or ``ObjectMissing`` if one cannot be read.
    """

    def text(self, key: str) -> bytes:
        """The text of the part ``wire`` of one that took over nothing, checked."""
        ...

    def header(self, key: str) -> Mapping[str, Any]:
        """What an attempt's header has, not checked against its digest."""
        ...


class _Entry(NamedTuple):
    """What a pack has of an object: its header and its parts, by their names, or the ``whole``.

    ``again``: the attempts whose texts are the dictionary of the part ``wire``.
    """

    digest: str
    header_bytes: bytes
    again: tuple[str, ...]
    stored: dict[str, memoryview]
    whole: memoryview | None = None


class Pack:
    """A pack as read; safe between threads.

    ``names`` are the keys of its objects. ``whole`` is False if its bytes are not those that were
    written: what it holds speaks for itself.
    """

    def __init__(self, pack_key: str, data: bytes) -> None:
        """Take a pack apart.

        Raises:
            ObjectCorrupt: if it cannot be.
        """
        try:
            self._archived, self.whole = unseal(pack_key, data, _KIND), True
        except ObjectCorrupt:
            # A damaged byte hides little: each object carries its own digest.
            self._archived, self.whole = unchecked(pack_key, data), False
        self.size = len(data)
        self._prefix = keys.packed_prefix(pack_key) or ""
        # Of one turn, the last that was asked for: all have many times the bytes of the pack.
        self._turn: tuple[str, dict[str, _Entry]] = ("", {})
        try:
            listed = list(self._listed())
        except _MALFORMED:
            listed = []
        self.names = frozenset(listed)
        if len(listed) != len(self.names) or not all(_belongs(key, pack_key) for key in listed):
            listed = []
        fields = self._archived.header
        if fields.get("kind") != _KIND or {*fields} != _FIELDS[self._archived.format] or not listed:
            raise ObjectCorrupt(f"{pack_key}: is no pack of the turns that its key names")

    def get(self, key: str, attempts: Attempts) -> bytes | None:
        """The object at a key, as it may stand alone; None if it is not here.

        Raises:
            ObjectCorrupt: if it cannot be read.
        """
        if key not in self.names:
            return None
        entry = self._entry(key)
        if entry.whole is not None:
            return bytes(entry.whole)
        stored: dict[str, bytes | memoryview] = {**entry.stored}
        if entry.again:
            stored[WIRE] = compress(_text(key, entry, attempts), WIRE_DICTIONARY)
        return assembled(entry.header_bytes, [*stored.values()], entry.digest)

    def text(self, key: str) -> bytes | None:
        """The text of the part ``wire`` of the attempt at a key, which took over nothing; None if
        it is not here.

        Raises:
            ObjectCorrupt: if it cannot be read, or is damaged.
        """
        if key not in self.names:
            return None
        entry = self._entry(key)
        if entry.whole is not None:
            return unseal(key, bytes(entry.whole)).frame(WIRE, WIRE_DICTIONARY)
        # So that nobody who makes a pack can have one text lean on another for ever.
        if entry.again:
            raise ObjectCorrupt(f"{key}: is repeated by others, and repeats others itself")
        text = _text(key, entry, None)
        if not _is_sound(key, entry, text):
            raise ObjectCorrupt(f"{key}: what it says does not have its digest")
        return text

    def header(self, key: str) -> Mapping[str, Any] | None:
        """What the header of the object at a key has; None if it is not here.

        Raises:
            ObjectCorrupt: if it cannot be read.
        """
        if key not in self.names:
            return None
        entry = self._entry(key)
        try:
            if entry.whole is not None:
                return header_of(bytes(entry.whole))
            return dict(json.loads(entry.header_bytes))
        except _MALFORMED as error:
            raise ObjectCorrupt(f"{key}: its header cannot be read in its pack: {error}") from error

    def is_sound(self, key: str, attempts: Attempts) -> bool:
        """Whether the object at a key is here, with all that it says."""
        if key not in self.names:
            return False
        try:
            entry = self._entry(key)
            if entry.whole is not None:
                return is_whole(key, bytes(entry.whole))
            return _is_sound(key, entry, _text(key, entry, attempts))
        except ObjectCorrupt:
            return False

    def _listed(self) -> Iterator[str]:
        names = self._archived.names
        if self._archived.format == 1:
            yield from (f"{self._prefix}{name}" for name in names)
            return
        objects = self._archived.header["objects"]
        if tuple(objects) != names:
            raise ValueError("its parts are not its turns")
        for turn, of_turn in objects.items():
            yield from (f"{self._prefix}{int(turn) // 100:05d}/{turn}.{name}" for name in of_turn)

    def _entry(self, key: str) -> _Entry:
        if self._archived.format == 1:
            return _Entry("", b"", (), {}, self._archived.part(key.removeprefix(self._prefix)))
        turn, _, name = key.rpartition("/")[2].partition(".")
        try:
            last, entries = self._turn
            if last != turn:
                entries = self._entries(turn)
                self._turn = turn, entries
            return entries[name]
        except _MALFORMED as error:
            raise ObjectCorrupt(f"{key}: cannot be read in its pack: {error}") from error

    def _entries(self, turn: str) -> dict[str, _Entry]:
        part, names = self._archived.part(turn), self._archived.header["objects"][turn]
        text, at = self._text_of_entries(turn, b"" if turn == self._first else self._like)
        lines, entries = iter(text.split(b"\n")), {}
        for name in names:
            told = json.loads(next(lines))
            if size := told.get("whole"):
                entries[name] = _Entry("", b"", (), {}, part[at : at + size])
                at += size
                continue
            stored = {}
            for each, size in told["stored"]:
                stored[each] = part[at : at + size]
                at += size
            if not _DIGEST.fullmatch(told["digest"]):
                raise ValueError("its digest is none")
            again = tuple(keys.attempts_in(told.get("again", ())))
            entries[name] = _Entry(told["digest"], next(lines), again, stored)
        if at != len(part) or next(lines, None) is not None:
            raise ValueError(f"turn {turn} has more or less than its objects")
        return entries

    @cached_property
    def _first(self) -> str:
        return self._archived.names[0]

    @cached_property
    def _like(self) -> bytes:
        return self._text_of_entries(self._first, b"")[0][:_LIKE]

    def _text_of_entries(self, turn: str, like: bytes) -> tuple[bytes, int]:
        """A turn's entries, and where its objects' parts begin."""
        part = self._archived.part(turn)
        size, start = read_varint(part, 0)
        return decompress(part[start : start + size], HEADER_DICTIONARY + like), start + size


def packed(pack_key: str, objects: Iterable[tuple[str, bytes]], attempts: Attempts) -> bytes | None:
    """The pack of some objects, in the order of their keys; None if it would hold fewer than
    ``FEWEST``.

    What is damaged is left out, and what is too large.
    """
    turns: dict[str, dict[str, tuple[bytes, list[bytes | memoryview]]]] = {}
    room = _MOST_OF_A_PACK
    for key, data in objects:
        # What is damaged stays where it is, and is told of there.
        with suppress(ObjectCorrupt):
            entry, stored, size = _entry_of(unseal(key, data), data, attempts)
            if size > _MOST_OF_AN_OBJECT:
                continue
            room -= size
            if room < 0:
                break
            turn, _, name = key.rpartition("/")[2].partition(".")
            turns.setdefault(turn, {})[name] = entry, stored
    if sum(map(len, turns.values())) < FEWEST:
        return None
    like, parts = b"", []
    for turn, entries in turns.items():
        text = b"\n".join(entry for entry, _ in entries.values())
        frame = compress(text, HEADER_DICTIONARY + like)
        like = like or text[:_LIKE]
        stored = [one for _, several in entries.values() for one in several]
        part = b"".join((varint(len(frame)), frame, *stored))
        parts.append(Part(turn, part, len(part)))
    fields = {"kind": _KIND, "objects": {turn: list(entries) for turn, entries in turns.items()}}
    return seal(pack_key, header(fields, tuple(parts)), tuple(parts))[0]


def _entry_of(
    archived: ArchivedObject, data: bytes, attempts: Attempts
) -> tuple[bytes, list[bytes | memoryview], int]:
    """The lines that a pack has of an object, its parts there, and about how many bytes it takes:
    as many as alone, but for the text that it repeats.
    """
    if archived.format == 1:
        return canonical_json({"whole": len(data)}), [data], len(data)
    size = len(data)
    stored: dict[str, bytes | memoryview] = {}
    told: dict[str, Any] = {"digest": archived.digest}
    for part in archived.parts():
        stored[part.name] = part.stored
        if part.name != WIRE:
            continue
        # What cannot be read now is no dictionary.
        with suppress(ObjectCorrupt, ObjectMissing, *_MALFORMED):
            if first := _wrote_first(archived, attempts):
                again = compress(part.text, _known(first, attempts))
                if len(again) <= (1 - _LEAST_SAVED) * len(part.stored):
                    stored[WIRE], told["again"] = again, keys.grouped_attempts(first)
                    size -= len(part.stored) - len(again)
    told["stored"] = [[name, len(part)] for name, part in stored.items()]
    return canonical_json(told) + b"\n" + archived.header_bytes, [*stored.values()], size


def _wrote_first(archived: ArchivedObject, attempts: Attempts) -> list[str]:
    """The attempts of its job that took over nothing, and wrote what an attempt took over."""
    if archived.header.get("level", 0) > _DEEPEST:
        return []
    place = keys.parse_turn_key(archived.key)
    first, seen = [], {archived.key}
    left = keys.attempts_in(archived.header.get("absorbed", ()))
    while left:
        key = left.pop()
        one = keys.parse_turn_key(key)
        # Of earlier turns alone, whatever a header says that somebody made.
        if key in seen or not (place and one and one.job == place.job and one.turn < place.turn):
            continue
        seen.add(key)
        if absorbed := attempts.header(key).get("absorbed"):
            left += keys.attempts_in(absorbed)
        else:
            first.append(key)
    return sorted(first)


def _known(first: Iterable[str], attempts: Attempts | None) -> bytes:
    if attempts is None:
        return WIRE_DICTIONARY
    return WIRE_DICTIONARY + b"".join(map(attempts.text, first))


def _text(key: str, entry: _Entry, attempts: Attempts | None) -> bytes:
    """The text of the part ``wire``; empty if there is none."""
    if WIRE not in entry.stored:
        return b""
    try:
        return decompress(entry.stored[WIRE], _known(entry.again, attempts))
    except (ValueError, ObjectMissing) as error:
        raise ObjectCorrupt(f"{key}: its text cannot be read in its pack: {error}") from error


def _is_sound(key: str, entry: _Entry, text: bytes) -> bool:
    """Whether an object says what its digest is of; ``text`` is that of its part ``wire``."""
    parts = (text if name == WIRE else stored for name, stored in entry.stored.items())
    return said(key, entry.header_bytes, parts) == entry.digest


def _belongs(key: str, pack_key: str) -> bool:
    place = keys.parse_turn_key(key)
    return place is not None and keys.pack_key(place.prefix, place.turn) == pack_key
