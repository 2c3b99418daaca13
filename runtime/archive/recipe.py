"""Recipes: how a document of one turn (its wire request, its layout) is put together from what is
stored.

An attempt stores only the bytes that its parent's documents do not have, its *literals*. A document
is then a sequence of *extents*: stretches of the literals of this attempt and of earlier ones. Most
attempts store their recipe relative to the parent's; every few turns one stores it flat, naming its
sources itself, so no chain is long.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from operator import attrgetter
from typing import NamedTuple

from runtime.archive.difference import Copy, Literal, Op
from runtime.archive.varints import read_varints, unzigzag, varint, zigzag


class Extent(NamedTuple):
    """``length`` bytes from ``offset`` of the literals of attempt ``source`` (its key)."""

    source: str
    offset: int
    length: int


Extents = tuple[Extent, ...]

_CRUMB = 64
_MOST_EXTENTS = 1 << 20
"""More than any document has: a recipe that takes the whole of the one before a few times, and so
each in its chain, would fill the memory.
"""
_LENGTH = attrgetter("length")


def compose(parent: Sequence[Extent], ops: Sequence[Op], own: str) -> Extents:
    """The extents of the document that ``ops`` make from the parent's; literals come from attempt
    ``own``, in order.

    Raises:
        ValueError: if an op copies what the parent does not have; if there are too many.
    """
    starts = _starts(parent)
    made: list[Extent] = []
    written = 0
    for op in ops:
        match op:
            case Literal(length=length):
                _add(made, Extent(own, written, length))
                written += length
            case Copy(offset=offset, length=length):
                if offset + length > starts[-1]:
                    raise ValueError(f"a copy of {offset}:{offset + length} of {starts[-1]} bytes")
                first, last = _held(starts, offset, length)
                _add(made, _part(parent, starts, first, offset, length))
                if last > first:
                    # What is whole between the ends was put together before, and stays as it is.
                    made += parent[first + 1 : last]
                    _add(made, _part(parent, starts, last, offset, length))
        if len(made) > _MOST_EXTENTS:
            raise ValueError(f"a document of more than {_MOST_EXTENTS:,} stretches")
    return tuple(made)


def solid(parent: Sequence[Extent], ops: Sequence[Op]) -> list[Op]:
    """``ops`` with crumbs as literals: extents under ``_CRUMB`` bytes at the ends of a copy.

    Two digits that a new line happens to share with the line it replaces would keep the old line's
    object among those that every later request must read.
    """
    starts = _starts(parent)
    made: list[Op] = []

    def literal(length: int) -> None:
        if made and isinstance(made[-1], Literal):
            length += made.pop().length
        if length:
            made.append(Literal(length))

    for op in ops:
        if isinstance(op, Literal):
            literal(op.length)
            continue
        first, last = _held(starts, op.offset, op.length)
        # From both ends, and no further than there are crumbs: a prompt may have hundreds of
        # extents.
        before = _crumbs(parent, starts, range(first, last + 1), op)
        after = _crumbs(parent, starts, range(last, first - 1, -1), op) if before < op.length else 0
        literal(before)
        if before + after < op.length:
            made.append(Copy(op.offset + before, op.length - before - after))
        literal(after)
    return made


def absorb(
    extents: Sequence[Extent], sources: frozenset[str], own: str
) -> tuple[Extents, list[tuple[int, int]]]:
    """The same document with the extents of ``sources`` and ``own`` as literals of ``own``,
    numbered anew.

    Returns the extents, and the stretches (start, stop) of the document that are ``own``'s
    literals.
    """
    made: list[Extent] = []
    stretches: list[tuple[int, int]] = []
    position = written = 0
    for extent in extents:
        stop = position + extent.length
        if extent.source == own or extent.source in sources:
            _add(made, Extent(own, written, extent.length))
            stretches.append((position, stop))
            written += extent.length
        else:
            _add(made, extent)
        position = stop
    return tuple(made), stretches


def encode_ops(ops: Sequence[Op]) -> bytes:
    """A relative recipe: for each op its length and kind, and for a copy where it starts after the
    one before.
    """
    out, end = [varint(len(ops))], 0
    for op in ops:
        if isinstance(op, Copy):
            out += (varint(op.length << 1 | 1), varint(zigzag(op.offset - end)))
            end = op.offset + op.length
        else:
            out.append(varint(op.length << 1))
    return b"".join(out)


def encode_extents(extents: Sequence[Extent], sources: Sequence[str], own: str) -> bytes:
    """A flat recipe: for each extent its source's number (0 is this attempt), its length and its
    offset's change.
    """
    numbers = {own: 0} | {source: number for number, source in enumerate(sources, 1)}
    # Offsets are told from where the last extent of the same source ended: mostly a difference of
    # 0.
    ends = dict.fromkeys(numbers, 0)
    out = [varint(len(extents))]
    for source, offset, length in extents:
        out += (varint(numbers[source]), varint(length), varint(zigzag(offset - ends[source])))
        ends[source] = offset + length
    return b"".join(out)


def decode_ops(data: bytes | memoryview) -> list[list[Op]]:
    """The relative recipes that stand one after the other in ``data``.

    Raises:
        ValueError, IndexError: if they are damaged.
    """
    numbers = iter(read_varints(data))
    documents: list[list[Op]] = []
    for count in numbers:
        ops: list[Op] = []
        end = 0
        for _ in range(count):
            word = _next(numbers)
            if word & 1:
                offset = end + unzigzag(_next(numbers))
                end = offset + (word >> 1)
                if offset < 0:
                    raise ValueError("a copy from before the start")
                ops.append(Copy(offset, word >> 1))
            else:
                ops.append(Literal(word >> 1))
        documents.append(ops)
    return documents


def decode_extents(data: bytes | memoryview, sources: Sequence[str], own: str) -> list[Extents]:
    """The flat recipes that stand one after the other in ``data``.

    Raises:
        ValueError, IndexError: if they are damaged.
    """
    numbers = iter(read_varints(data))
    names = (own, *sources)
    documents: list[Extents] = []
    for count in numbers:
        extents: list[Extent] = []
        ends = [0] * len(names)
        for _ in range(count):
            number, length = _next(numbers), _next(numbers)
            offset = ends[number] + unzigzag(_next(numbers))
            ends[number] = offset + length
            if offset < 0:
                raise ValueError("an extent from before the start")
            extents.append(Extent(names[number], offset, length))
        documents.append(tuple(extents))
    return documents


def _next(numbers: Iterator[int]) -> int:
    try:
        return next(numbers)
    except StopIteration:
        raise ValueError("the recipe ends early") from None


def _starts(extents: Sequence[Extent]) -> list[int]:
    """Where each begins in their document, and where that ends."""
    return list(accumulate(map(_LENGTH, extents), initial=0))


def _held(starts: Sequence[int], offset: int, length: int) -> tuple[int, int]:
    """The places of the first and the last of the extents, beginning at ``starts``, that hold some
    of ``length`` bytes from ``offset``.
    """
    return bisect_right(starts, offset) - 1, bisect_left(starts, offset + length) - 1


def _part(
    extents: Sequence[Extent], starts: Sequence[int], place: int, offset: int, length: int
) -> Extent:
    """What the extent at ``place`` holds of ``length`` bytes from ``offset``."""
    source, start, size = extents[place]
    skip = max(offset - starts[place], 0)
    return Extent(source, start + skip, min(size, offset + length - starts[place]) - skip)


def _crumbs(parent: Sequence[Extent], starts: Sequence[int], places: range, op: Copy) -> int:
    """How many of the bytes that ``op`` copies are crumbs, up to the first of ``places`` that is
    none.
    """
    sizes = (_part(parent, starts, place, op.offset, op.length).length for place in places)
    return sum(takewhile(lambda size: size < _CRUMB, sizes))


def _add(extents: list[Extent], extent: Extent) -> None:
    """Append, as one with the last if it goes on where that ends."""
    if extents:
        source, offset, length = extents[-1]
        if source == extent.source and offset + length == extent.offset:
            extents[-1] = Extent(source, offset, length + extent.length)
            return
    if extent.length:
        extents.append(extent)
