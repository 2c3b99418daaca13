"""A job's archive as JSON lines: the definition, then every model call and every effect of a run, in turn order."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from runtime.archive.calls import recorded_effects, side_calls
from runtime.archive.gaps import UNREADABLE, Gap, gap_of, readable
from runtime.archive.inspect import diff_layouts
from runtime.archive.job import JobArchive
from runtime.archive.prompts import prompts
from runtime.archive.records import Step
from runtime.archive.requests import RequestReader
from runtime.projection.segments import Segment
from runtime.values import StepRef


def export_lines(archive: JobArchive, run: str | None = None) -> Iterator[dict[str, Any]]:
    """One JSON object a line, in order: ``definition``, one ``step`` a turn, the ``attempt`` in flight, the ``end``.

    Before a step stand the results of the statement before it (``effect``, one line each) and the calls that wrote summaries
    for it (``summary``, with what a step's line has). ``run`` is the newest by default. A layout is given as the digests of
    its segments; a segment is given in full where it is first used, so lines stay as small as their news. Bytes are text
    where they are UTF-8, else base64. Of a job without a run there is the definition alone.
    """
    run = archive.runs()[-1] if run is None and archive.runs() else run
    definition = archive.definition()
    if definition is not None:
        yield {"type": "definition", "definition": definition}
    if run is None:
        return
    summaries = side_calls(archive, run)
    before: tuple[Segment, ...] = ()
    last: StepRef | None = None
    gaps: list[Gap] = []
    layouts = {turn: layout for turn, _, layout in prompts(archive, run, gaps=gaps)}
    found = readable(archive, run)
    for step in found.steps:
        while gaps and (gaps[0].turn or 0) < step.turn:
            yield {"type": "damaged", **gaps.pop(0).document()}
        yield from _whole(_effects(archive, step.effects), step)
        while summaries and summaries[0].turn <= step.turn:
            call = summaries.pop(0)
            yield from _whole(_summary(call.archive, call.run, call.turn), step)
        layout = layouts.get(step.turn, ())
        yield from _whole(_steps(archive, step, before, layout), step)
        before, last = layout, step.ref
    yield from ({"type": "damaged", **gap.document()} for gap in gaps)
    yield from _effects(archive, archive.naming.after(run, last)["effects"])
    for call in summaries:
        yield from _summary(call.archive, call.run, call.turn)
    attempt = archive.in_flight(run)
    if attempt is not None:
        layout = archive.turn_layout(attempt.run, attempt.turn)
        fields = _attempt(archive, attempt.key, attempt.model_dump(mode="json"))
        yield {"type": "attempt", **fields, **_layout(before, layout)}
    if found.end is not None:
        yield {"type": "end", **found.end.model_dump(mode="json")}


def _whole(lines: Iterator[dict[str, Any]], step: Step) -> Iterator[dict[str, Any]]:
    """Lines, as far as what they are made from can be read; then one that says what cannot."""
    try:
        yield from lines
    except UNREADABLE as error:
        key = str(error).partition(": ")[0]
        yield {"type": "damaged", **gap_of(error, key if "/" in key else step.ref.key, step.turn).document()}


def _steps(
    archive: JobArchive, step: Step, before: tuple[Segment, ...], layout: tuple[Segment, ...]
) -> Iterator[dict[str, Any]]:
    yield {"type": "step", **_step(archive, step), **_layout(before, layout)}


def _effects(archive: JobArchive, effects: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for effect in recorded_effects(archive.store, effects):
        yield {"type": "effect", **effect}


def _summary(archive: JobArchive, run: str, turn: int) -> Iterator[dict[str, Any]]:
    """A summary's call: as a step's line, or, without a reply, with its attempts alone."""
    step = archive.find_step(run, turn)
    if step is not None:
        yield {"type": "summary", **_step(archive, step), **_layout((), archive.turn_layout(run, turn))}
    else:
        yield {"type": "summary", "run": run, "turn": turn, "reply": None, "attempts": _attempts(archive, run, turn)}


def _step(archive: JobArchive, step: Step) -> dict[str, Any]:
    return {
        **step.model_dump(mode="json"),
        "response": _text(archive.wire_response(step.run, step.turn)),
        "chunks": [[chunk.at_us, chunk.size] for chunk in archive.chunks(step.run, step.turn)],
        "attempts": _attempts(archive, step.run, step.turn),
    }


def _attempts(archive: JobArchive, run: str, turn: int) -> list[dict[str, Any]]:
    return [_attempt(archive, a.key, a.model_dump(mode="json")) for a in archive.attempts(run, turn)]


def _attempt(archive: JobArchive, key: str, fields: dict[str, Any]) -> dict[str, Any]:
    """An attempt with its request; how it failed, or what else came back of it, with what was received."""
    failure = archive.failure(key)
    failed = {}
    if failure is not None:
        failed = {"failure": {**failure.model_dump(mode="json"), "response": _text(archive.failed_response(key))}}
    exchange = archive.exchange(key)
    other = {}
    if exchange is not None:
        told = {**exchange.model_dump(mode="json"), "response": _text(archive.exchanged_response(key))}
        other = {"exchange": told}
    return {**fields, "request": _text(RequestReader(archive.store.get).wire(key)), **failed, **other}


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
