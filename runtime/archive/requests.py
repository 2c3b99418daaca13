"""Storing requests as what is new in them, and putting any of them together again with few reads.

The design says: the request before is the dictionary of the next, with a keyframe every 32 turns.
Taken literally, a keyframe holds the whole request again: in a chat that only grows, most of the
archive would be keyframes (75 kB a turn at 5,000 turns of 1.2 kB), and a chain of 32 links
decompresses the whole request 32 times. So the dictionary is made explicit (``recipe.py``), which
has neither cost, and the bound of a keyframe is kept another way: no request needs more than
``MOST_READS`` objects. When one would, it takes over (*absorbs*) the live literals of some of its
sources. Absorbed literals have a level one higher than their sources', and the lowest level that
has enough of them is absorbed first, oldest first: so a byte is rewritten once a level, and not
once a turn, as in a log-structured merge tree. (No scheme of write-once objects can do without:
5,000 turns of new text that only a request of 5,000 turns needs together cannot be in 40 objects
and be stored once.)
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple, Protocol

from runtime.archive import keys
from runtime.archive.container import WIRE, ArchivedObject, Part
from runtime.archive.dictionaries import LAYOUT_DICTIONARY, WIRE_DICTIONARY
from runtime.archive.difference import Copy, Literal, Op, difference
from runtime.archive.forms import opened
from runtime.archive.frames import MOST_BYTES, compress
from runtime.archive.recipe import (
    Extents,
    absorb,
    compose,
    decode_extents,
    decode_ops,
    encode_extents,
    encode_ops,
    solid,
)
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt

MOST_READS = 40
MOST_DEPTH = 12
"""Links of a chain of relative recipes.

A flat one costs some 300 bytes more; a link may cost a read.
"""
_MOST_EXTENTS = 600
_LEAST_ROOM = 12
_DENSE = 0.7
_FEWEST_ABSORBED = 4
_MOST_OF_A_RECIPE = 16 << 20
"""Bytes: each may be a number, and all are read at once."""
_CACHE_BYTES = 256 << 20
_EACH = 3
"""Requests that are kept of a job: the next turn begins with the last, summaries are beside it."""


@dataclass(frozen=True)
class Place:
    """Where an attempt's documents are: their extents, the chain of objects that told so, and each
    source's level.
    """

    key: str
    wire: Extents
    layout: Extents
    chain: tuple[str, ...]
    levels: Mapping[str, int]

    @property
    def reads(self) -> int:
        """How many objects are read to rebuild both documents from nothing."""
        return len(self.levels.keys() | set(self.chain))


class Begun(NamedTuple):
    """The SHA-256 of the first ``length`` bytes of a document, as far as these go: a document that
    begins so is hashed from there on.
    """

    length: int
    state: Any

    def upto(self, length: int, document: bytes) -> Begun:
        """That of more of a document, the first of which are these."""
        # A hash changes with what is added, and other documents go on with this one.
        state = self.state.copy()
        state.update(memoryview(document)[self.length : length])
        return Begun(length, state)


NOT_BEGUN = Begun(0, hashlib.sha256())


@dataclass(frozen=True)
class Request:
    """An attempt's documents: the wire request, and the layout as one JSON line a segment.

    ``begun`` is of what the wire request has in common with the one before, where that is known.
    """

    place: Place
    wire: bytes
    layout: bytes
    begun: Begun = NOT_BEGUN


@dataclass(frozen=True)
class Plan:
    """How to store a request: the header's fields and the parts of the attempt's object, and the
    digest of the wire request.
    """

    request: Request
    fields: Mapping[str, Any]
    parts: tuple[Part, ...]
    digest: str


def plan(
    key: str, parent: Request | None, wire: bytes, layout: bytes, *, flat: bool = False
) -> Plan:
    """How attempt ``key`` stores its documents, given its parent's.

    ``flat``: do not name the parent's recipe.
    """
    old_wire, old_layout = (parent.wire, parent.layout) if parent else (b"", b"")
    old = parent.place if parent else Place("", (), (), (), {})
    differs = difference(old_wire, wire)
    begun = _begun(parent, wire, differs)
    digest = f"sha256:{begun.upto(len(wire), wire).state.hexdigest()}"
    wire_ops = solid(old.wire, differs)
    layout_ops = solid(old.layout, difference(old_layout, layout))
    place = Place(
        key, compose(old.wire, wire_ops, key), compose(old.layout, layout_ops, key), (key,), {}
    )
    # A place with its chain is tried first: naming the parent costs less than naming all sources.
    relative = _place(place, parent, 0, chained=True)
    if parent is not None and not flat and len(relative.chain) <= MOST_DEPTH and _fits(relative):
        fields = {"base": parent.place.key, "level": 0, "sources": None}
        recipe = encode_ops(wire_ops) + encode_ops(layout_ops)
        own = _own_bytes(wire, wire_ops), _own_bytes(layout, layout_ops)
        return Plan(Request(relative, wire, layout, begun), fields, _parts(recipe, *own), digest)
    flatly = Request(_place(place, parent, 0, chained=False), wire, layout, begun)
    return _plan_flat(flatly, digest)


def _begun(parent: Request | None, wire: bytes, differs: list[Op]) -> Begun:
    """The hash of what ``wire`` has in common with the request before, which goes on from the hash
    of what that one had in common with its own.
    """
    match differs:
        case [Copy(offset=0, length=head), *_] if parent is not None:
            known = parent.begun if parent.begun.length <= head else NOT_BEGUN
            return known.upto(head, wire)
    return NOT_BEGUN


def _plan_flat(request: Request, digest: str) -> Plan:
    place, wire, layout = request.place, request.wire, request.layout
    level, absorbed = (0, frozenset[str]()) if _fits(place) else _choose(place)
    wire_extents, wire_own = absorb(place.wire, absorbed, place.key)
    layout_extents, layout_own = absorb(place.layout, absorbed, place.key)
    levels = {s: n for s, n in place.levels.items() if s not in absorbed} | {place.key: level}
    sources = sorted(levels.keys() - {place.key}, key=_turn)
    recipe = b"".join(encode_extents(e, sources, place.key) for e in (wire_extents, layout_extents))
    own = b"".join(wire[a:b] for a, b in wire_own), b"".join(layout[a:b] for a, b in layout_own)
    fields: dict[str, Any] = {
        "base": None,
        "level": level,
        "sources": keys.grouped_attempts(sources),
    }
    if absorbed:
        fields["absorbed"] = keys.grouped_attempts(sorted(absorbed, key=_turn))
    stored = Place(place.key, wire_extents, layout_extents, (place.key,), levels)
    return Plan(replace(request, place=stored), fields, _parts(recipe, *own), digest)


def _choose(place: Place) -> tuple[int, frozenset[str]]:
    """Which sources to absorb, and the level of what comes of it.

    The lowest level, with all below it, that the levels above leave at least ``_LEAST_ROOM`` reads
    for: absorbing fewer would be due again at once. Of the lowest level alone, how many follows
    from how dense its sources are among the turns they span: where nothing dies (a chat that grows)
    all, so that a byte is rewritten seldom; where most die soon anyway (a projection whose parts
    change) few.
    """
    sources = sorted(place.levels.keys() - {place.key}, key=_turn)
    above = Counter(place.levels[source] for source in sources)
    for level in range(max(above) + 1):
        del above[level]
        if MOST_READS - 2 - above.total() < _LEAST_ROOM:
            continue
        those = [s for s in sources if place.levels[s] <= level]
        if level == 0 and len(those) > 1:
            density = len(those) / (_turn(place.key) - _turn(those[0]))
            if density < _DENSE:
                those = those[: max(_FEWEST_ABSORBED, int(len(those) * density**2))]
        if len(those) > 1:
            return level + 1, frozenset(those)
    return max(place.levels.values()) + 1, frozenset(sources)


def _fits(place: Place) -> bool:
    return place.reads <= MOST_READS and len(place.wire) + len(place.layout) <= _MOST_EXTENTS


def _place(place: Place, parent: Request | None, level: int, *, chained: bool) -> Place:
    """``place`` with its chain and the levels of the sources that are still in use."""
    known = {**(parent.place.levels if parent else {}), place.key: level}
    used = {e.source for e in place.wire} | {e.source for e in place.layout} | {place.key}
    chain = (place.key, *parent.place.chain) if chained and parent else (place.key,)
    return Place(
        place.key, place.wire, place.layout, chain, {s: n for s, n in known.items() if s in used}
    )


def _own_bytes(document: bytes, ops: list[Op]) -> bytes:
    out, position = [], 0
    for op in ops:
        if isinstance(op, Literal):
            out.append(document[position : position + op.length])
        position += op.length
    return b"".join(out)


def _parts(recipe: bytes, wire: bytes, layout: bytes) -> tuple[Part, ...]:
    parts = []
    packed = compress(recipe)
    if len(packed) < len(recipe):
        parts.append(Part("recipe.zst", packed, len(recipe)))
    else:
        parts.append(Part("recipe", recipe, len(recipe)))
    if wire:
        parts.append(Part(WIRE, compress(wire, WIRE_DICTIONARY), len(wire), wire))
    if layout:
        # A segment's text is in the request too: with that as the dictionary it costs a few bytes.
        parts.append(Part("layout", compress(layout, LAYOUT_DICTIONARY + wire), len(layout)))
    return tuple(parts)


def _turn(key: str) -> int:
    parsed = keys.parse_turn_key(key)
    return parsed.turn if parsed else -1


class Edit(NamedTuple):
    """How a document is made from another one: ops, and the bytes of the literals among them, in
    their order.
    """

    ops: list[Op]
    literals: bytes


class Attempts(Protocol):
    """Attempts' objects that were read before."""

    def get(self, key: str) -> ArchivedObject | None:
        """The object of a key, if it is remembered."""
        ...

    def put(self, key: str, value: ArchivedObject) -> None:
        """Remember an object."""
        ...


class RequestReader:
    """Puts requests together, reading each object once.

    ``read`` gets an object's bytes by its key; what is among the ``known`` is not read.
    """

    def __init__(self, read: Callable[[str], bytes], known: Attempts | None = None) -> None:
        self._read, self._known = read, known
        self._objects: dict[str, ArchivedObject] = {}
        self._wire_literals: dict[str, bytes] = {}
        self._layout_literals: dict[str, bytes] = {}

    def object(self, key: str) -> ArchivedObject:
        """The attempt's object, from the store or from this reader's memory.

        Raises:
            ObjectMissing, ObjectCorrupt: if it is not there or damaged.
        """
        if key not in self._objects:
            archived = self._known.get(key) if self._known is not None else None
            if archived is None:
                archived = opened(key, self._read(key), "attempt")
                if self._known is not None:
                    self._known.put(key, archived)
            self._objects[key] = archived
        return self._objects[key]

    def remember(self, archived: ArchivedObject) -> None:
        """Take an attempt's object that was read already."""
        self._objects[archived.key] = archived

    def place(self, key: str) -> Place:
        """Where the attempt's documents are.

        Reads the chain of recipes, not the sources, so ``levels`` is empty.
        """
        chain = [self.object(key)]
        while chain[-1].header["base"] is not None:
            # A damaged header may lead in a circle.
            if len(chain) > MOST_DEPTH:
                raise ObjectCorrupt(f"{key}: its chain of recipes has more than {MOST_DEPTH} links")
            chain.append(self.object(chain[-1].header["base"]))
        try:
            sources = keys.attempts_in(chain[-1].header["sources"])
            wire, layout = decode_extents(_recipe(chain[-1]), sources, chain[-1].key)
            for link in reversed(chain[:-1]):
                wire_ops, layout_ops = decode_ops(_recipe(link))
                wire, layout = (
                    compose(wire, wire_ops, link.key),
                    compose(layout, layout_ops, link.key),
                )
        except (ValueError, IndexError, TypeError, KeyError) as error:
            raise ObjectCorrupt(f"{key}: its recipe cannot be read: {error}") from error
        return Place(key, wire, layout, tuple(link.key for link in chain), {})

    def wire(self, key: str) -> bytes:
        """The exact bytes of the attempt's request.

        Raises:
            ObjectMissing, ObjectCorrupt: if anything it is made of is not there, damaged, or not
            what was sent.
        """
        return self._wire(self.place(key))

    def _wire(self, place: Place) -> bytes:
        wire = self._put_together(place.wire, self._literals_of_wire)
        if digest_bytes(wire) != self.object(place.key).header["request"]["digest"]:
            raise ObjectCorrupt(
                f"{place.key}: the request put together is not the one that was sent"
            )
        return wire

    def layout(self, key: str) -> bytes:
        """The document of the attempt's layout.

        Raises:
            ObjectMissing, ObjectCorrupt: as for ``wire``.
        """
        return self._layout(self.place(key))

    def _layout(self, place: Place) -> bytes:
        layout = self._put_together(place.layout, self._literals_of_layout)
        if len(layout) != self.object(place.key).header["layout"]["bytes"]:
            raise ObjectCorrupt(
                f"{place.key}: the layout put together has another size than the one that was"
                " written"
            )
        return layout

    def layout_extents(self, key: str) -> Extents:
        """Where the document of the attempt's layout is.

        Raises:
            ObjectMissing, ObjectCorrupt: as for ``wire``.
        """
        return self.place(key).layout

    def layout_of(self, extents: Extents) -> bytes:
        """The bytes of a stretch of a layout.

        Raises:
            ObjectMissing, ObjectCorrupt: as for ``wire``.
        """
        return self._put_together(extents, self._literals_of_layout)

    def layout_edit(self, key: str, before: str | None) -> Edit | None:
        """How the attempt's layout is made from that of the attempt ``before``; None if its recipe
        is not told by that one.

        So a walk from turn to turn reads each object once, composes no chain of recipes, and puts
        no document together.

        Raises:
            ObjectMissing, ObjectCorrupt: as for ``wire``.
        """
        return self._edit(key, before, 1, self._literals_of_layout)

    def wire_edit(self, key: str, before: str | None) -> Edit | None:
        """``layout_edit`` of the request."""
        return self._edit(key, before, 0, self._literals_of_wire)

    def _edit(
        self, key: str, before: str | None, document: int, literals: Callable[[str], bytes]
    ) -> Edit | None:
        archived = self.object(key)
        if before is None or archived.header["base"] != before:
            return None
        try:
            ops = decode_ops(_recipe(archived))[document]
        except (ValueError, IndexError) as error:
            raise ObjectCorrupt(f"{key}: its recipe cannot be read: {error}") from error
        return Edit(ops, literals(key) if any(isinstance(op, Literal) for op in ops) else b"")

    def layout_bytes(self, key: str) -> int:
        """The size of the attempt's layout, as it was written."""
        return int(self.object(key).header["layout"]["bytes"])

    def request(self, key: str) -> Request:
        """Both documents, and where they are.

        Raises:
            ObjectMissing, ObjectCorrupt: as for ``wire``.
        """
        place = self.place(key)
        wire = self._wire(place)
        layout = self._layout(place)
        used = {e.source for e in place.wire} | {e.source for e in place.layout} | {key}
        levels = {source: int(self.object(source).header["level"]) for source in used}
        return Request(Place(key, place.wire, place.layout, place.chain, levels), wire, layout)

    def _literals_of_wire(self, key: str) -> bytes:
        if key not in self._wire_literals:
            self._wire_literals[key] = self.object(key).frame(WIRE, WIRE_DICTIONARY)
        return self._wire_literals[key]

    def _literals_of_layout(self, key: str) -> bytes:
        if key not in self._layout_literals:
            dictionary = LAYOUT_DICTIONARY + self._literals_of_wire(key)
            self._layout_literals[key] = self.object(key).frame("layout", dictionary)
        return self._layout_literals[key]

    def _put_together(self, extents: Extents, literals: Callable[[str], bytes]) -> bytes:
        # What is written of one text many times takes little room in a recipe.
        if sum(extent.length for extent in extents) > MOST_BYTES:
            raise ObjectCorrupt(f"{extents[0].source}: a recipe makes more than {MOST_BYTES} bytes")
        texts: dict[str, memoryview] = {}
        out = []
        for source, offset, length in extents:
            if source not in texts:
                texts[source] = memoryview(literals(source))
            stretch = texts[source][offset : offset + length]
            if len(stretch) != length:
                raise ObjectCorrupt(f"{source}: its literals end before byte {offset + length}")
            out.append(stretch)
        return b"".join(out)


def _recipe(archived: ArchivedObject) -> bytes:
    return archived.frame("recipe.zst", most=_MOST_OF_A_RECIPE) or bytes(archived.part("recipe"))


class RequestCache:
    """The requests that this process wrote or read last, by attempt key: at most ``_EACH`` of a
    job, and bounded in bytes; safe between threads.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._lock = Lock()
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._of_jobs: dict[str, deque[str]] = {}

    def get(self, key: str) -> Request | None:
        """The request, or None."""
        with self._lock:
            if key in self._requests:
                self._requests.move_to_end(key)
            return self._requests.get(key)

    def put(self, request: Request) -> None:
        """Remember a request."""
        # Two threads may have read one request, to no harm.
        with self._lock:
            if request.place.key in self._requests:
                return
            key = request.place.key
            own = self._of_jobs.setdefault(keys.job_prefix_in(key), deque())
            own.append(key)
            self._requests[key] = request
            self._bytes += len(request.wire) + len(request.layout)
            if len(own) > _EACH:
                self._forget(own[0])
            # What was just put stays, however large it is.
            while self._bytes > _CACHE_BYTES and len(self._requests) > 1:
                self._forget(next(iter(self._requests)))

    def forget(self, job: str) -> None:
        """Forget the requests of the job with this prefix."""
        with self._lock:
            for key in [*self._of_jobs.get(job, ())]:
                self._forget(key)

    def _forget(self, key: str) -> None:
        old = self._requests.pop(key)
        self._bytes -= len(old.wire) + len(old.layout)
        own = self._of_jobs[prefix := keys.job_prefix_in(key)]
        own.remove(key)
        if not own:
            del self._of_jobs[prefix]
