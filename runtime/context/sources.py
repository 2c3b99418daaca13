"""What a node asks of its source and what comes back: the values of the read activity.

Reading returns an excerpt bounded by the node's token budget, the source's fingerprint, and
"unchanged" when the node already has that rendering, so history holds what the model could see and
no more (docs/design.md section 5).
"""

from __future__ import annotations

from enum import StrEnum

from runtime.base.values import Value

ALL_TOKENS = -1
"""The budget that the model writes as ``All``: as much as the reader's own bound allows."""


SUMMARY_LOD = 2
"""The level at which a model sums a source up."""

STANDS_IN_UNTIL = "standing in until its summary is written"
"""How the note of what stands in for a summary ends."""

STANDS_IN_SINCE = "standing in since its summary failed; it is asked for again later"
"""How that note ends after a summary that could not be written."""

STANDS_IN = f"structure, {STANDS_IN_UNTIL}"
"""The note of a reading at level 2 whose summary is not there yet; another reading brings it once
it is.
"""

GROUP_STANDS_IN = f"extract, {STANDS_IN_UNTIL}"
"""The note of a group at level 2 of which no model has written a summary yet."""

NO_WRITER = "structure, for no model writes summaries in this job (summary_model)"
"""The note of a reading at level 2 in a job without a model for summaries."""


def of_workspace(path: str) -> bool:
    """Whether a path is one of the workspace: what has a scheme is no file, and nothing that a
    statement writes changes it.
    """
    return "://" not in path


class ReadStatus(StrEnum):
    """How a read ended.

    ``UNWRITTEN``: the source, or group, is as before, but the summary that was wanted could not be
    written.
    """

    OK = "ok"
    UNCHANGED = "unchanged"
    ERROR = "error"
    UNWRITTEN = "unwritten"


def stands_in(note: str) -> bool:
    """Whether a note says that something stands in for a summary that is still to be written."""
    return note.endswith((STANDS_IN_UNTIL, STANDS_IN_SINCE))


def note_after_failure(note: str) -> str:
    """The note of what stands in, once a summary has failed."""
    return (
        note.removesuffix(STANDS_IN_UNTIL) + STANDS_IN_SINCE
        if note.endswith(STANDS_IN_UNTIL)
        else note
    )


def note_after(before: str, note: str) -> str:
    """A newer ``note`` than ``before``: that the last summary failed is told until one is
    written.
    """
    return note_after_failure(note) if before.endswith(STANDS_IN_SINCE) else note


class ReadRequest(Value):
    """Read ``path`` (a file, directory or glob relative to the workspace, or a URI) for node
    ``obj_id`` at a position, budget and level of detail.

    ``pos`` is ``"line:column"``, ``"line"`` (both 0-based) or ``"/text"`` (the first line that
    contains ``text``); ``tokens`` is a count or ``ALL_TOKENS``; ``lod`` is 0 (excerpt), 1
    (structure) or 2 (summary). ``known`` is the ``basis`` of the rendering that the node has, if it
    has one.
    """

    obj_id: str
    path: str
    pos: str = "0:0"
    tokens: int
    lod: int = 0
    known: str | None = None


class ReadResult(Value):
    """The excerpt, or why there is none.

    ``basis`` is the digest of (fingerprint, pos, tokens, lod): equal basis, equal text.
    ``fingerprint`` identifies the source's content (``sha256:…``). Lines are 0-based, ``last_line``
    exclusive. ``truncated`` tells that the source has more than the excerpt shows, ``note`` what
    else a reader must know of it.
    """

    obj_id: str
    status: ReadStatus
    basis: str = ""
    fingerprint: str = ""
    text: str = ""
    first_line: int = 0
    last_line: int = 0
    total_lines: int = 0
    size: int = 0
    tokens: int = 0
    truncated: bool = False
    error_type: str | None = None
    error_message: str = ""
    note: str = ""
