"""Layouts as the archive stores them: one line of canonical JSON a segment, in the order of the
prompt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from runtime.base.digests import canonical_json, digest_of
from runtime.base.errors import ObjectCorrupt
from runtime.projection.segments import Add, Keep, LayoutDelta, Segment


@dataclass(frozen=True)
class Layout:
    """The segments of one prompt, and the line of each (without its newline)."""

    segments: tuple[Segment, ...]
    lines: tuple[bytes, ...]

    @classmethod
    def empty(cls) -> Layout:
        """The layout before the first turn."""
        return cls((), ())

    @cached_property
    def document(self) -> bytes:
        """The layout's bytes."""
        return b"".join(line + b"\n" for line in self.lines)

    @cached_property
    def digest(self) -> str:
        """That of the list of the segments' digests: a segment's digest is that of its line."""
        return digest_of([segment.digest for segment in self.segments])

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
        return Layout(segments, tuple(lines))


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
