"""What of the prompt changed from turn to turn of a run: read from what each turn stored, not from
whole prompts.

A prompt of turn 2,000 has thousands of segments, of which a turn changes a few. So the walk goes
from each layout's document to the next by what the attempt stored, compares the two at memcmp's
speed, and takes apart the stretch between alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.archive import keys
from runtime.archive.difference import Copy, Literal, Op, common_prefix, common_suffix
from runtime.archive.gaps import UNREADABLE, Gap, gap_of
from runtime.archive.job import JobArchive
from runtime.archive.layouts import lines_of
from runtime.archive.recipe import Extents
from runtime.archive.requests import RequestReader
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.projection.segments import Segment


@dataclass(frozen=True)
class LayoutChange:
    """How a turn's layout differs from that of the last turn that can be read: one stretch of lines
    in place of another.

    ``start`` is how many lines stand in front of both. A line is a segment as the archive stores
    it. ``attempt`` is the key of the attempt that showed it.
    """

    turn: int
    attempt: str
    start: int
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


def layout_changes(
    archive: JobArchive, run: str, last: int | None = None, gaps: list[Gap] | None = None
) -> Iterator[LayoutChange]:
    """Each turn's change, up to turn ``last``, also one in flight. Each object is read once.

    With ``gaps``, turns whose prompt cannot be read are left out, and what is the matter with them
    is put in there. A reply that cannot be read hides no prompt.

    Raises:
        ObjectCorrupt, ObjectMissing: without ``gaps``, for what is damaged or lost.
    """
    reader = RequestReader(archive.store.get)
    walk = _Walk()
    for turn, key in attempts_shown(archive, run, last, gaps):
        try:
            edit = reader.layout_edit(key, walk.attempt)
            stretch = walk.anew(reader, key) if edit is None else walk.edited(*edit)
            if stretch.size != reader.layout_bytes(key):
                raise ObjectCorrupt(
                    f"{key}: the layout put together has another size than the one that was written"
                )
        except UNREADABLE as error:
            if gaps is None:
                raise
            gaps.append(gap_of(error, key, turn))
            # The walk stays where it was: the next turn's layout is compared as a whole.
            continue
        yield walk.take(turn, key, stretch)


class _Stretch(NamedTuple):
    """``new`` in place of the bytes ``start`` to ``stop`` of a document, which then has ``size``
    bytes; where they are, if that was read.
    """

    start: int
    stop: int
    new: bytes
    size: int
    extents: Extents | None = None


class _Walk:
    """The document of the layout that was read last, changed in place: its end is short, and most
    changes are there.
    """

    def __init__(self) -> None:
        self.attempt: str | None = None
        self._document = bytearray()
        self._lines = 0
        # Where the last layout was of which that was read, and how many bytes of its start no edit
        # has touched since.
        self._extents: Extents = ()
        self._untouched = 0

    def edited(self, ops: list[Op], literals: bytes) -> _Stretch:
        """The stretch that ops change: what is between a copy of the start and one of the end."""
        old = self._document
        head = ops[0].length if ops and isinstance(ops[0], Copy) and ops[0].offset == 0 else 0
        between = ops[1:] if head else ops
        stop = len(old)
        if (
            between
            and isinstance(between[-1], Copy)
            and between[-1].offset + between[-1].length == len(old)
        ):
            stop = max(between[-1].offset, head)
            skipped = stop - between[-1].offset
            between = [*between[:-1], *([Copy(between[-1].offset, skipped)] if skipped else [])]
        new, at = [], 0
        for op in between:
            if isinstance(op, Literal):
                new.append(literals[at : at + op.length])
                at += op.length
            else:
                new.append(bytes(old[op.offset : op.offset + op.length]))
        return self._of_lines(head, stop, b"".join(new))

    def anew(self, reader: RequestReader, key: str) -> _Stretch:
        """The stretch in which the layout of attempt ``key`` differs, told by no other's recipe."""
        extents = reader.layout_extents(key)
        same, size = 0, 0
        for old, new in zip(self._extents, extents, strict=False):
            if old != new or size + new.length > self._untouched:
                break
            same, size = same + 1, size + new.length
        # Most of a long prompt is where it was: putting it together again would take most of a
        # walk's time.
        document = reader.layout_of(extents[same:])
        rest = bytes(self._document[size:])
        head = common_prefix(rest, 0, document, 0)
        tail = common_suffix(rest, document, min(len(rest), len(document)) - head)
        stretch = self._of_lines(
            size + head, size + len(rest) - tail, document[head : len(document) - tail]
        )
        return stretch._replace(extents=extents)

    def _of_lines(self, start: int, stop: int, new: bytes) -> _Stretch:
        """The stretch, widened to whole lines."""
        old = self._document
        first = old.rfind(b"\n", 0, start) + 1
        new = bytes(old[first:start]) + new
        # The rest may begin within a line, or where one began that now has something in front of
        # it.
        last = stop
        if (stop < len(old) and not (new.endswith(b"\n") or not new)) or (
            stop > 0 and old[stop - 1] != 10
        ):
            last = old.find(b"\n", stop) + 1 or len(old)
        new += bytes(old[stop:last])
        return _Stretch(first, last, new, len(old) - (last - first) + len(new))

    def take(self, turn: int, key: str, stretch: _Stretch) -> LayoutChange:
        """Go on to the document that a stretch makes."""
        start, stop, new, size, extents = stretch
        behind = self._document.count(b"\n", start)
        removed, added = list(lines_of(bytes(self._document[start:stop]))), list(lines_of(new))
        self._document[start:stop] = new
        if extents is None:
            self._untouched = min(self._untouched, start)
        else:
            self._extents, self._untouched = extents, size
        kept = self._lines - behind
        self._lines += len(added) - len(removed)
        self.attempt = key
        while removed and added and removed[-1] == added[-1]:
            del removed[-1], added[-1]
        return LayoutChange(turn, key, kept, tuple(removed), tuple(added))


def attempts_shown(
    archive: JobArchive, run: str, last: int | None, gaps: list[Gap] | None
) -> Iterator[tuple[int, str]]:
    """Each turn's attempt that was answered (or made last), from the names of objects; a step is
    read where there are several.

    Raises:
        ObjectCorrupt, ObjectMissing: as for ``layout_changes``.
    """
    turns: dict[int, list[str]] = {}
    for key, place in archive.lineage.places(run):
        if place.kind in {"attempt", "step"} and (last is None or place.turn <= last):
            turns.setdefault(place.turn, []).append(key)
    for turn in range(min(turns, default=1), max(turns, default=0) + 1):
        prefix = (
            archive.lineage.turn_prefix(run, turn)
            if turn not in turns
            else turns[turn][0].rpartition(".")[0] + "."
        )
        steps = [key for key in turns.get(turn, ()) if key.endswith(".step")]
        attempts = keys.attempts_among(turns.get(turn, ()))
        key = f"{prefix}attempt-001" if not attempts else f"{prefix}step"
        try:
            if not attempts:
                raise ObjectMissing(f"{key} is not there")
            # One attempt leaves no choice, and of a turn in flight the last one is shown.
            of_many = len(attempts) > 1 and (bool(steps) or turn != max(turns))
            yield turn, archive.step_at(key).attempt.key if of_many else attempts[-1]
        except UNREADABLE as error:
            if gaps is None:
                raise
            gaps.append(gap_of(error, key, turn))


@dataclass
class Standing:
    """The lines of a prompt, in order, each with the turn since which it stands there; and so its
    kind and origin.

    What left the prompt and came back is as old as its return.
    """

    lines: list[bytes] = field(default_factory=list)
    texts: dict[bytes, int] = field(default_factory=dict)
    sources: dict[tuple[str, str], int] = field(default_factory=dict)
    _count: Counter[bytes] = field(default_factory=Counter)
    _sources: Counter[tuple[str, str]] = field(default_factory=Counter)
    _named: dict[bytes, tuple[str, str]] = field(default_factory=dict)

    def apply(self, change: LayoutChange) -> None:
        """Take over a turn's change: what it adds is there before what it removes is gone, so what
        only moved stays.
        """
        self.lines[change.start : change.start + len(change.removed)] = change.added
        unnamed = [line for line in dict.fromkeys(change.added) if line not in self._named]
        self._named.update(zip(unnamed, _sources_of(unnamed, change.attempt), strict=True))
        for line in change.added:
            source = self._named[line]
            self.texts.setdefault(line, change.turn)
            self.sources.setdefault(source, change.turn)
            self._count[line] += 1
            self._sources[source] += 1
        for line in change.removed:
            source = self._named[line]
            self._count[line] -= 1
            self._sources[source] -= 1
            if not self._count[line]:
                del self._count[line], self.texts[line], self._named[line]
            if not self._sources[source]:
                del self._sources[source], self.sources[source]

    def source(self, line: bytes) -> tuple[str, str]:
        """The kind and origin of a line that stands."""
        return self._named[line]


def _sources_of(lines: list[bytes], key: str) -> list[tuple[str, str]]:
    """The kind and origin of each of some lines of the layout of attempt ``key``.

    Raises:
        ObjectCorrupt: if one of them is no segment.
    """
    try:
        # One call of the parser: of the walk's time, that of many small calls is a good part.
        fields = json.loads(b"[" + b",".join(lines) + b"]")
        sources = [(str(one["kind"]), str(one["origin"])) for one in fields]
        if len(sources) != len(lines):
            raise ValueError(f"{len(lines)} lines hold {len(sources)} values")
    except (ValueError, TypeError, KeyError) as error:
        raise ObjectCorrupt(f"{key}: a line of its layout is no segment: {error}") from error
    return sources


def segment_of(line: bytes, key: str) -> Segment:
    """The segment of a line of the layout of attempt ``key``.

    Raises:
        ObjectCorrupt: if it is none.
    """
    try:
        return Segment.model_validate(json.loads(line))
    except ValueError as error:
        raise ObjectCorrupt(f"{key}: a line of its layout is no segment: {error}") from error
