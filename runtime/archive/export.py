"""A job's archive as JSON lines: the definition, then each turn with its attempts, requests, response and new segments."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from runtime.archive.inspect import diff_layouts
from runtime.archive.job import JobArchive
from runtime.archive.prompts import prompts
from runtime.archive.requests import RequestReader
from runtime.projection.segments import Segment


def export_lines(archive: JobArchive, run: str | None = None) -> Iterator[dict[str, Any]]:
    """One JSON object a line, in order: ``definition``, one ``step`` a turn, the ``attempt`` in flight, the ``end``.

    ``run`` is the newest by default. A layout is given as the digests of its segments; a segment is given in full where
    it is first used, so lines stay as small as their news. Bytes are text where they are UTF-8, else base64.

    Raises:
        NotFound: if there is no such run.
    """
    run = archive.runs()[-1] if run is None and archive.runs() else run
    definition = archive.definition()
    if definition is not None:
        yield {"type": "definition", "definition": definition}
    before: tuple[Segment, ...] = ()
    layouts = prompts(archive, run) if run is not None else iter(())
    for step, (_, _, layout) in zip(archive.steps(run), layouts, strict=False):
        yield {
            "type": "step",
            **step.model_dump(mode="json"),
            "response": _text(archive.wire_response(step.run, step.turn)),
            "chunks": [[chunk.at_us, chunk.size] for chunk in archive.chunks(step.run, step.turn)],
            "attempts": [
                _attempt(archive, a.key, a.model_dump(mode="json")) for a in archive.attempts(step.run, step.turn)
            ],
            **_layout(before, layout),
        }
        before = layout
    attempt = archive.in_flight(run)
    if attempt is not None:
        layout = archive.turn_layout(attempt.run, attempt.turn)
        fields = _attempt(archive, attempt.key, attempt.model_dump(mode="json"))
        yield {"type": "attempt", **fields, **_layout(before, layout)}
    end = archive.end(run) if run is not None else None
    if end is not None:
        yield {"type": "end", **end.model_dump(mode="json")}


def _attempt(archive: JobArchive, key: str, fields: dict[str, Any]) -> dict[str, Any]:
    """An attempt with its request, and how it failed with what was received, if it did."""
    failure = archive.failure(key)
    failed = {}
    if failure is not None:
        failed = {"failure": {**failure.model_dump(mode="json"), "response": _text(archive.failed_response(key))}}
    return {**fields, "request": _text(RequestReader(archive.store.get).wire(key)), **failed}


def _layout(before: tuple[Segment, ...], after: tuple[Segment, ...]) -> dict[str, Any]:
    known = {segment.digest for segment in before}
    new = {s.digest: s.model_dump(mode="json", exclude_defaults=True) for s in after if s.digest not in known}
    difference = diff_layouts(before, after)
    return {
        "layout": [segment.digest for segment in after],
        "new_segments": new,
        "stable_share": round(difference.stable_share, 4),
    }


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
