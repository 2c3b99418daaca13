"""What a statement printed.

An end holds it. A step holds the digests, and its prompt the texts, with the ends trimmed, which is
how the model was told: the digests tell what was trimmed, and where one stream ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runtime.archive.job import JobArchive
from runtime.base.digests import digest_of
from runtime.base.fences import unfenced
from runtime.projection.segments import SegmentKind

_STDERR = re.compile(r"^stderr:\n", re.MULTILINE)
_MOST_TRIMMED = 100
"""Line ends that are looked for behind what a prompt shows."""


def printed(
    execution: Mapping[str, Any] | None, stream: str, told: Sequence[str] = ()
) -> str | None:
    """What a statement printed to a stream, where prompts ``told`` of it so; None for a text that
    is not to be found.
    """
    execution = execution or {}
    if stream in execution:
        return str(execution[stream])
    digest = execution.get(f"{stream}_digest")
    if digest is None:
        return ""
    trimmed = (text for said in told for text in _candidates(execution, stream, said))
    return next(
        (
            text + "\n" * count
            for text in trimmed
            for count in range(_MOST_TRIMMED + 1)
            if digest_of(text + "\n" * count) == digest
        ),
        None,
    )


def told_of(archive: JobArchive, run: str, turn: int) -> tuple[str, ...]:
    """What the prompt after a turn says of its statement's outcome.

    Raises:
        NotFound: if there is no such prompt.
    """
    head = f"[turn {turn}: "
    said = [
        s.text.partition("\n")[2]
        for s in archive.turn_layout(run, turn + 1)
        if s.kind is SegmentKind.RESULT and s.text.startswith(head)
    ]
    # Prompts of earlier releases have no fences.
    return tuple(text for one in said for text in (unfenced(one), one))


def _candidates(execution: Mapping[str, Any], stream: str, told: str) -> Iterator[str]:
    """The texts that may be the stream's: see ``runtime.job.results.execution_text``."""
    exception = execution.get("exception") or {}
    trace = (
        str(exception.get("trace_summary", "")).strip()
        or f"{exception.get('type')}: {exception.get('message')}"
    )
    body = told.removesuffix(trace).removesuffix("\n") if exception else told
    # What was printed may hold the mark, too.
    marks = list(_STDERR.finditer(body))
    if stream == "stderr":
        yield from (body[mark.end() :] for mark in marks)
    else:
        yield body
        yield from (body[: mark.start()].removesuffix("\n") for mark in reversed(marks))
