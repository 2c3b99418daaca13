"""What a byte string has in common with an older one: the copies and literals that make the new
from the old.

Prompts change in few places: a long prefix stays, something is added, the tail is rewritten. So:
cut the common prefix and suffix (at memcmp's speed), cut what is between into lines and JSON
objects, and look those up in the old.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

_LEAST_COPY = 40
"""Shorter copies cost as much as they save: a copy takes some 6 bytes, and ties the new object to
the old.
"""
_BREAK = re.compile(rb"\n|\\n|\{\"")
# 64 KiB slices are compared at memcmp's speed; the stride shrinks only around the first difference.
_STRIDE = 1 << 16


class Copy(NamedTuple):
    """``length`` bytes of the old string from ``offset``."""

    offset: int
    length: int


class Literal(NamedTuple):
    """The next ``length`` bytes of the new string, which the old one does not have."""

    length: int


Op = Copy | Literal


def difference(old: bytes, new: bytes) -> list[Op]:
    """Ops that make ``new`` from ``old``, in order; they cover ``new`` completely."""
    head = common_prefix(old, 0, new, 0)
    if head < _LEAST_COPY:
        head = 0
    # The end may not reach into the beginning that is taken already.
    tail = common_suffix(old, new, min(len(old), len(new)) - head)
    if tail < _LEAST_COPY:
        tail = 0
    ops: list[Op] = [Copy(0, head)] if head else []
    ops += _middle(old, head, len(old) - tail, new, head, len(new) - tail)
    if tail:
        ops.append(Copy(len(old) - tail, tail))
    return ops


def common_prefix(a: bytes, a_start: int, b: bytes, b_start: int) -> int:
    """How many bytes ``a`` from ``a_start`` and ``b`` from ``b_start`` have in common."""
    most = min(len(a) - a_start, len(b) - b_start)
    length, stride = 0, _STRIDE
    while stride:
        stop = min(length + stride, most)
        if (
            stop > length
            and a[a_start + length : a_start + stop] == b[b_start + length : b_start + stop]
        ):
            length = stop
        else:
            stride //= 4
    return length


def common_suffix(a: bytes, b: bytes, most: int) -> int:
    """How many bytes ``a`` and ``b`` have in common at their ends, ``most`` at the most."""
    length, stride = 0, _STRIDE
    while stride:
        stop = min(length + stride, most)
        if (
            stop > length
            and a[len(a) - stop : len(a) - length] == b[len(b) - stop : len(b) - length]
        ):
            length = stop
        else:
            stride //= 4
    return length


def _middle(
    old: bytes, old_start: int, old_stop: int, new: bytes, new_start: int, new_stop: int
) -> list[Op]:
    places: dict[bytes, int] = {}
    for start, stop in _pieces(old, old_start, old_stop):
        # The first place of equal pieces, so that the same inputs always give the same ops.
        places.setdefault(old[start:stop], start)
    ops: list[Op] = []
    done = new_start
    for start, stop in _pieces(new, new_start, new_stop) if places else ():
        if start < done:
            continue
        place = places.get(new[start:stop])
        if place is None:
            continue
        # Grow the match over the neighbouring bytes, but not into what is written already.
        before = 0
        while (
            start - before > done
            and place > before
            and new[start - before - 1] == old[place - before - 1]
        ):
            before += 1
        length = before + min(common_prefix(old, place, new, start), new_stop - start)
        if length < _LEAST_COPY:
            continue
        if start - before > done:
            ops.append(Literal(start - before - done))
        ops.append(Copy(place - before, length))
        done = start - before + length
    if done < new_stop:
        ops.append(Literal(new_stop - done))
    return ops


def _pieces(data: bytes, start: int, stop: int) -> list[tuple[int, int]]:
    """Stretches between breaks that are long enough to be worth looking up."""
    cuts = [start, *(match.start() for match in _BREAK.finditer(data, start, stop)), stop]
    return [(a, b) for a, b in pairwise(cuts) if b - a >= _LEAST_COPY // 2]
