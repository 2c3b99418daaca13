"""Reading prompts: what changed between two, since when each segment stands there, where it is in
the wire. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from runtime.base.native_arguments import load_arguments
from runtime.projection.segments import Segment, thought_of
from runtime.projection.transcript import code_of


class ChangeKind(StrEnum):
    """What happened to a segment between two layouts."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True)
class Change:
    """One segment's change; positions are indices into the layouts, None where it is not in that
    one.
    """

    kind: ChangeKind
    before: Segment | None
    after: Segment | None
    position_before: int | None
    position_after: int | None


@dataclass(frozen=True)
class LayoutDifference:
    """What changed, in the order of the later layout (a removal behind what stood before it and is
    still there).

    ``stable_tokens`` are the tokens of the common prefix, which a provider's cache can serve;
    ``tokens`` those of the later layout; ``broken_by`` is the change that ended the prefix, None if
    all of the later layout is stable.
    """

    changes: tuple[Change, ...]
    stable_segments: int
    stable_tokens: int
    tokens: int
    broken_by: Change | None

    @property
    def stable_share(self) -> float:
        """The common prefix's share of the later layout's tokens, from 0 to 1."""
        return self.stable_tokens / self.tokens if self.tokens else 1.0


def diff_layouts(before: Sequence[Segment], after: Sequence[Segment]) -> LayoutDifference:
    """What changed from one layout to another.

    A segment that is gone and one of the same kind and origin that is new are one that changed; one
    with the same digest at another place in the order was moved.
    """
    old, new = [s.digest for s in before], [s.digest for s in after]
    gone: list[int] = []
    come: list[int] = []
    stayed: dict[int, int] = {}
    # By default difflib passes over what is frequent among 200 items or more.
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            stayed |= zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            gone += range(i1, i2)
            come += range(j1, j2)
    changes: list[tuple[tuple[int, int], Change]] = []
    left = dict.fromkeys(gone)
    for j in come:
        i = _partner(before, left, after[j])
        if i is None:
            changes.append(((j, -1), Change(ChangeKind.ADDED, None, after[j], None, j)))
            continue
        del left[i]
        kind = ChangeKind.MOVED if old[i] == new[j] else ChangeKind.CHANGED
        changes.append(((j, -1), Change(kind, before[i], after[j], i, j)))
        if kind is ChangeKind.CHANGED:
            stayed[i] = j
    for i in left:
        place = next((stayed[k] for k in range(i - 1, -1, -1) if k in stayed), -1)
        changes.append(((place, i), Change(ChangeKind.REMOVED, before[i], None, i, None)))
    ordered = tuple(change for _, change in sorted(changes, key=lambda placed: placed[0]))
    stable = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    return LayoutDifference(
        changes=ordered,
        stable_segments=stable,
        stable_tokens=sum(s.tokens for s in after[:stable]),
        tokens=sum(s.tokens for s in after),
        broken_by=ordered[0] if ordered and stable < len(new) else None,
    )


def _partner(before: Sequence[Segment], left: Iterable[int], segment: Segment) -> int | None:
    """The segment of ``left`` that ``segment`` was: the same text first, else the same kind and
    origin.
    """
    same_origin = None
    for i in left:
        if before[i].digest == segment.digest:
            return i
        if same_origin is None and (before[i].kind, before[i].origin) == (
            segment.kind,
            segment.origin,
        ):
            same_origin = i
    return same_origin


@dataclass(frozen=True)
class Blame:
    """A segment of a prompt, the turn that brought in its kind and origin, and the turn that last
    changed its text.
    """

    segment: Segment
    position: int
    introduced: int
    changed: int


def why(blames: Sequence[Blame], text: str) -> tuple[Blame, ...]:
    """The segments in which ``text`` stands: in what is said, in a call's arguments or the
    statement in them, or in a thinking block.
    """
    return tuple(one for one in blames if says(one.segment, text))


def says(segment: Segment, text: str) -> bool:
    """Whether ``text`` stands in what the segment says."""
    return any(text in said for said in _said(segment))


def _said(segment: Segment) -> Iterator[str]:
    yield segment.text
    for call in segment.tool_calls:
        # As the model wrote it, and as ``show`` prints it: with its quotes and line ends.
        yield from (call.arguments, code_of(call))
    yield from map(thought_of, segment.thinking)


_BORDERS = (b'"', b"\\n\\n")
"""What stands beside a segment's text: an end of its string, or the blank line between the segments
of one message.
"""

# A shorter text stands in a request by chance, as part of another, too easily.
_LONG = 24


@dataclass(frozen=True)
class ByteRange:
    """Bytes ``start`` to ``stop`` (exclusive) of a wire request."""

    start: int
    stop: int


def locate(request: bytes, layout: Sequence[Segment]) -> tuple[ByteRange | None, ...]:
    """Where each segment stands in a wire request: its text, or, where it has none, its first
    call's arguments.

    None where it cannot be found. Looks for the text as JSON strings write it, with and without
    escapes for other scripts, first behind the segment before and then from the start: providers
    take the system prompt apart from the messages.
    """
    places: list[ByteRange | None] = []
    position = 0
    for segment in layout:
        ways = (_find(request, way, position, anywhere=long) for way, long in _written(segment))
        place = next(filter(None, ways), None)
        if place is not None:
            position = place.stop
        places.append(place)
    return tuple(places)


def _written(segment: Segment) -> Iterator[tuple[bytes, bool]]:
    """The ways in which a request may write a segment, and whether it can hardly be anything
    else.
    """
    if segment.text:
        for way in _escaped(segment.text):
            yield way, len(way) >= _LONG
    elif segment.tool_calls:
        arguments = segment.tool_calls[0].arguments
        for way in _escaped(arguments):
            yield way, False
        try:
            value = load_arguments(arguments)
        except (ValueError, RecursionError):
            return
        for separators in ((",", ":"), (", ", ": ")):
            for ascii_only in (True, False):
                yield (
                    _bytes(json.dumps(value, ensure_ascii=ascii_only, separators=separators)),
                    bool(value),
                )


def _escaped(text: str) -> Iterator[bytes]:
    for ascii_only in (True, False):
        yield _bytes(json.dumps(text, ensure_ascii=ascii_only)[1:-1])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _find(request: bytes, wanted: bytes, position: int, *, anywhere: bool) -> ByteRange | None:
    """Where ``wanted`` is a string or a paragraph of one; then, if it may be, where it is at
    all.
    """
    for start in (position, 0):
        at = request.find(wanted, start)
        while at >= 0:
            stop = at + len(wanted)
            # The longer of the borders has four bytes.
            if request.endswith(_BORDERS, max(at - 4, 0), at) and request.startswith(
                _BORDERS, stop
            ):
                return ByteRange(at, stop)
            at = request.find(wanted, at + 1)
    for start in (position, 0) if anywhere else ():
        at = request.find(wanted, start)
        if at >= 0:
            return ByteRange(at, at + len(wanted))
    return None
