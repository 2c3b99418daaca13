"""What a statement printed and did to the context, from the record that follows its turn."""

from __future__ import annotations

from typing import Any

from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.archive.recorded import TurnRecord
from runtime.base.digests import digest_of
from runtime.base.fences import unfenced
from runtime.projection.segments import SegmentKind

_STDERR = "stderr:\n"


def outcome_of(archive: JobArchive, run: str, record: TurnRecord) -> dict[str, Any]:
    """The statement's ``stdout``, ``stderr`` and ``events``.

    None for a text that is not to be found, as where it was condensed.

    An end holds what was printed. A step holds the digests, and its prompt the texts, which is how
    the model was told.
    """
    execution = record.execution or {}
    ids = frozenset(execution.get("events", ()))
    events = [event for event in record.events or () if event.get("id") in ids]
    after = record.after
    texts = _told(archive, run, after) if isinstance(after, Step) else ()
    return {
        "stdout": _stream_text(execution, "stdout", texts),
        "stderr": _stream_text(execution, "stderr", texts),
        "events": events,
    }


def _told(archive: JobArchive, run: str, after: Step) -> tuple[str, ...]:
    """What the prompt of the step says of the statement before."""
    head = f"[turn {after.turn - 1}: "
    layout = archive.turn_layout(run, after.turn)
    said = [
        s.text.partition("\n")[2]
        for s in layout
        if s.kind is SegmentKind.RESULT and s.text.startswith(head)
    ]
    # Prompts of earlier releases have no fences.
    return tuple(text for told in said for text in (unfenced(told), told))


def _stream_text(execution: dict[str, Any], stream: str, texts: tuple[str, ...]) -> str | None:
    if stream in execution:
        return str(execution[stream])
    digest = execution.get(f"{stream}_digest")
    if digest is None:
        return ""
    return next(
        (text for told in texts for text in _candidates(told) if digest_of(text) == digest), None
    )


def _candidates(told: str) -> list[str]:
    """The texts that may be the stream's: whole lines from the start, or behind the mark of the
    other, to any line.
    """
    # A prompt does not say where one stream ends: the recorded digests tell the right cut.
    starts = [0, *(at + len(_STDERR) for at in range(len(told)) if told.startswith(_STDERR, at))]
    ends = [at for at, char in enumerate(told) if char == "\n"] + [len(told)]
    return [
        told[start:end] + tail
        for start in starts
        for end in reversed(ends)
        if end > start
        for tail in ("\n", "")
    ]
