"""Layouts as the archive stores them: one line of canonical JSON a segment, in the order of the
prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runtime.base.digests import canonical_json, digest_bytes
from runtime.base.errors import ObjectCorrupt
from runtime.projection.segments import Add, Keep, LayoutDelta, Segment


@dataclass(frozen=True)
class Hashed:
    """The SHA-256 of the canonical JSON of the digests of a layout's first ``count`` segments, as
    far as these go: the digest of a layout that begins so costs what is new in it.
    """

    count: int
    state: Any

    def more(self, lines: Sequence[bytes]) -> Hashed:
        """That of the segments with these ``lines``, the first of which are these."""
        # A hash changes with what is added, and the layouts before go on with theirs.
        state = self.state.copy()
        # By its line: a segment that has just arrived would be made into JSON for its digest again.
        texts = [canonical_json(digest_bytes(line)) for line in lines[self.count :]]
        if texts:
            state.update((b"," if self.count else b"") + b",".join(texts))
        return Hashed(len(lines), state)


NOTHING_HASHED = Hashed(0, hashlib.sha256(b"["))


@dataclass(frozen=True)
class Layout:
    """The segments of one prompt, and the line of each (without its newline)."""

    segments: tuple[Segment, ...]
    lines: tuple[bytes, ...]
    begun: Hashed = field(default=NOTHING_HASHED, compare=False, repr=False)
    counted: int | None = field(default=None, compare=False, repr=False)
    """The tokens of all segments, if that is known."""

    @classmethod
    def empty(cls) -> Layout:
        """The layout before the first turn."""
        return cls((), ())

    @cached_property
    def document(self) -> bytes:
        """The layout's bytes."""
        return b"\n".join((*self.lines, b""))

    @cached_property
    def digest(self) -> str:
        """That of the list of the segments' digests: a segment's digest is that of its line."""
        hashed = self._hashed.more(self.lines)
        state = hashed.state.copy()
        state.update(b"]")
        return f"sha256:{state.hexdigest()}"

    @cached_property
    def tokens(self) -> int:
        """The tokens of all segments."""
        return _tokens(self.segments) if self.counted is None else self.counted

    @cached_property
    def _hashed(self) -> Hashed:
        """What the layouts after this one begin with: all but the tail."""
        stop = len(self.segments)
        while stop > self.begun.count and self.segments[stop - 1].tail:
            stop -= 1
        return self.begun.more(self.lines[:stop])

    def changed(self, delta: LayoutDelta, reply: Segment | None) -> Layout:
        """The layout that ``delta`` makes from this one.

        Raises:
            ValueError: if the delta refers to what is not there.
        """
        segments = delta.apply(self.segments, reply)
        lines: list[bytes] = []
        for part in delta.parts:
            if isinstance(part, Keep):
                lines += self.lines[part.start : part.stop]
            elif isinstance(part, Add):
                lines.append(line_of(part.segment))
            elif reply is not None:
                lines.append(line_of(reply))
        first = delta.parts[0] if delta.parts else None
        same = first.stop if isinstance(first, Keep) and first.start == 0 else 0
        # Only a layout that keeps all that was hashed may go on from that hash.
        begun = self._hashed if same >= self._hashed.count else NOTHING_HASHED
        counted = self.tokens - _tokens(self.segments[same:]) + _tokens(segments[same:])
        return Layout(segments, tuple(lines), begun, counted)


def _tokens(segments: Sequence[Segment]) -> int:
    return sum(segment.tokens for segment in segments)


def line_of(segment: Segment) -> bytes:
    """The segment's line: the canonical JSON of which its digest is made."""
    return canonical_json(segment.model_dump(mode="json", exclude_defaults=True))


def lines_of(document: bytes) -> tuple[bytes, ...]:
    """The lines of a layout's document."""
    return tuple(document.split(b"\n")[:-1])


def layout_of(document: bytes) -> Layout:
    """The layout that a document holds.

    Raises:
        ObjectCorrupt: if a line is no segment.
    """
    lines = lines_of(document)
    try:
        return Layout(tuple(Segment.model_validate(json.loads(line)) for line in lines), lines)
    except ValueError as error:
        raise ObjectCorrupt(f"a layout's line is no segment: {error}") from error
