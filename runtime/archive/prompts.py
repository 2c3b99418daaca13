"""The prompts of a run, one after the other, for what must see them all: blame, exports, shares of
stable prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.archive.changes import layout_changes, segment_of
from runtime.archive.gaps import Gap
from runtime.archive.job import JobArchive
from runtime.projection.segments import Segment

_FORGET = 4
"""How many times as many segments as the prompt has are kept at most."""

Prompt = tuple[int, str, tuple[Segment, ...]]
"""A turn, the key of the attempt that was answered (or made last), and its layout."""


def prompts(
    archive: JobArchive, run: str, last: int | None = None, gaps: list[Gap] | None = None
) -> Iterator[Prompt]:
    """Each turn's prompt, up to turn ``last``, also one in flight.

    Reads each object once, parses each segment once.

    With ``gaps``, turns that cannot be read are left out, and what is the matter with them is put
    in there.

    Raises:
        ObjectCorrupt, ObjectMissing: without ``gaps``, for what is damaged or lost.
    """
    lines: list[bytes] = []
    known: dict[bytes, Segment] = {}
    for change in layout_changes(archive, run, last, gaps):
        lines[change.start : change.start + len(change.removed)] = change.added
        fresh = {
            line: segment_of(line, change.attempt) for line in change.added if line not in known
        }
        known |= fresh
        if len(known) > _FORGET * (len(lines) + 1):
            # What left the prompts is dropped now and then; a segment that comes back is parsed
            # anew.
            known = {line: known[line] for line in lines}
        yield change.turn, change.attempt, tuple(map(known.__getitem__, lines))
