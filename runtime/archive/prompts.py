"""The prompts of a run, one after the other, for what must see them all: blame, exports, shares of stable prefixes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from runtime.archive.gaps import UNREADABLE, Gap, gap_of, readable
from runtime.archive.job import JobArchive
from runtime.archive.layouts import lines_of
from runtime.archive.requests import RequestReader
from runtime.errors import ObjectCorrupt
from runtime.projection.segments import Segment

Prompt = tuple[int, str, tuple[Segment, ...]]
"""A turn, the key of the attempt that was answered (or made last), and its layout."""


def prompts(archive: JobArchive, run: str, last: int | None = None, gaps: list[Gap] | None = None) -> Iterator[Prompt]:
    """Each turn's prompt, up to turn ``last``, also one in flight. Reads each object once, parses each segment once.

    With ``gaps``, turns that cannot be read are left out, and what is the matter with them is put in there.

    Raises:
        ObjectCorrupt, ObjectMissing: without ``gaps``, for what is damaged or lost.
    """
    reader = RequestReader(archive.store.get)
    known: dict[bytes, Segment] = {}
    for turn, key in _answered(archive, run, gaps):
        if last is not None and turn > last:
            return
        try:
            lines = lines_of(reader.layout(key))
        except UNREADABLE as error:
            if gaps is None:
                raise
            gaps.append(gap_of(error, key, turn))
            continue
        # Only what this prompt has is kept: a segment that comes back is parsed anew.
        known = {line: known.get(line) or _segment(line, key) for line in lines}
        yield turn, key, tuple(known[line] for line in lines)


def _answered(archive: JobArchive, run: str, gaps: list[Gap] | None) -> Iterator[tuple[int, str]]:
    if gaps is None:
        for step in archive.steps(run):
            yield step.turn, step.attempt.key
    else:
        found = readable(archive, run)
        gaps += found.gaps
        for step in found.steps:
            yield step.turn, step.attempt.key
    flying = archive.in_flight(run)
    if flying is not None:
        yield flying.turn, flying.key


def _segment(line: bytes, key: str) -> Segment:
    try:
        return Segment.model_validate(json.loads(line))
    except ValueError as error:
        raise ObjectCorrupt(f"{key}: a line of its layout is no segment: {error}") from error
