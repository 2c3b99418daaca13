"""A job's archive as JSON lines: the definition, then every model call and every effect of a run,
in turn order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.archive.calls import recorded_effect, side_calls
from runtime.archive.export_forms import Form, Full, text_of
from runtime.archive.forms import Step
from runtime.archive.gaps import UNREADABLE, Gap, gap_of, named_gap, readable
from runtime.archive.job import JobArchive
from runtime.archive.prompts import prompts
from runtime.base.values import StepRef
from runtime.projection.segments import Segment


@dataclass(frozen=True)
class Turns:
    """The turns from ``first`` to ``last`` (None: no end)."""

    first: int = 0
    last: int | None = None

    def hold(self, turn: int) -> bool:
        """Whether a turn is among them."""
        return self.first <= turn and (self.last is None or turn <= self.last)


def export_lines(
    archive: JobArchive,
    run: str | None = None,
    turns: Turns | None = None,
    *,
    form: type[Form] | None = None,
) -> Iterator[dict[str, Any]]:
    """One JSON object a line, in order: ``definition``, one ``step`` a turn, one ``attempt`` each
    of a turn without a reply, the ``end``.

    Before a step stand the results of the statement before it (``effect``, one line each) and the
    calls that wrote summaries for it (``summary``, with what a step's line has). ``run`` is the
    newest by default. ``turns`` are those to tell of, and all by default; the ``end`` is told with
    the last. ``form`` is how layouts and requests are given (``Full`` by default). Bytes are text
    where they are UTF-8, else base64. Of a job without a run there is the definition alone.
    """
    if run is None:
        run = next(reversed(archive.runs_that_called()), None)
    yield from _whole(_definition(archive))
    if run is not None:
        yield from _Export(archive, run, turns or Turns(), (form or Full)(archive)).lines()


class _Export:
    """The lines of a run's turns."""

    def __init__(self, archive: JobArchive, run: str, turns: Turns, form: Form) -> None:
        self.archive = archive
        self.run = run
        self.turns = turns
        self.form = form
        self.gaps: list[Gap] = []

    def lines(self) -> Iterator[dict[str, Any]]:
        archive, run, form = self.archive, self.run, self.form
        held = readable(archive, run)
        calls = side_calls(archive, run, held.gaps)
        summaries = [call for call in calls if self.turns.hold(call.turn)]
        self.gaps += [gap for gap in held.gaps if gap.turn is None or self.turns.hold(gap.turn)]
        last: StepRef | None = None
        layouts = self._layouts()
        layout: tuple[Segment, ...] | None = None
        at = 0
        for step in held.steps:
            last = step.ref
            if not self.turns.hold(step.turn):
                continue
            while at < step.turn:
                at, layout = next(layouts, (step.turn, None))
            yield from self._damaged(step.turn)
            yield from _effects(archive, step.effects, step.turn)
            while summaries and summaries[0].turn <= step.turn:
                call = summaries.pop(0)
                yield from _whole(_summary(form, call.archive, call.run, call.turn), step.turn)
            yield from _whole(
                _steps(form, archive, run, step, layout if at == step.turn else None), step.turn
            )
        yield from self._damaged(None)
        if held.steps and self.turns.last is not None and self.turns.last < held.steps[-1].turn:
            return
        yield from _effects(archive, dict.fromkeys(archive.naming.effects_after(run, last)))
        for call in summaries:
            yield from _whole(_summary(form, call.archive, call.run, call.turn), call.turn)
        yield from _whole(self._in_flight())
        if held.end is not None:
            yield {"type": "end", **held.end.document()}

    def _in_flight(self) -> Iterator[dict[str, Any]]:
        """The attempts of a turn without a reply."""
        last = self.archive.in_flight(self.run)
        if last is None or not self.turns.hold(last.turn):
            return
        for attempt in self.archive.attempts(last.run, last.turn):
            layout = self.archive.attempt_layout(attempt.key)
            fields = _attempt(self.form, self.archive, attempt.key, attempt.document())
            yield {"type": "attempt", **fields, **self.form.layout(layout)}

    def _layouts(self) -> Iterator[tuple[int, tuple[Segment, ...]]]:
        for turn, _, layout in prompts(self.archive, self.run, self.turns.last, self.gaps):
            yield turn, layout

    def _damaged(self, before: int | None) -> Iterator[dict[str, Any]]:
        """What could not be read of the turns before one, each object once."""
        due = [
            gap
            for gap in self.gaps
            if before is None or (gap.turn is not None and gap.turn <= before)
        ]
        # In place: the walk over the prompts goes on adding to it.
        self.gaps[:] = [gap for gap in self.gaps if gap not in due]
        for gap in dict.fromkeys(sorted(due, key=lambda gap: (gap.turn is None, gap.turn or 0))):
            if gap.turn is None or self.turns.hold(gap.turn):
                yield {"type": "damaged", **gap.document()}


def _whole(lines: Iterator[dict[str, Any]], turn: int | None = None) -> Iterator[dict[str, Any]]:
    """Lines, as far as what they are made from can be read; then one that says what cannot."""
    try:
        yield from lines
    except UNREADABLE as error:
        yield {"type": "damaged", **named_gap(error, turn).document()}


def _definition(archive: JobArchive) -> Iterator[dict[str, Any]]:
    definition = archive.definition()
    if definition is not None:
        yield {"type": "definition", "definition": definition}


def _steps(
    form: Form, archive: JobArchive, run: str, step: Step, layout: tuple[Segment, ...] | None
) -> Iterator[dict[str, Any]]:
    """The line of a step; one whose prompt cannot be read has none, and not an empty one."""
    told = _step(form, archive, run, step)
    yield {"type": "step", **told, **({} if layout is None else form.layout(layout))}


def _effects(
    archive: JobArchive, effects: Mapping[str, str | None], turn: int | None = None
) -> Iterator[dict[str, Any]]:
    """A line for each effect, given by their keys and the digests by which they are named."""
    for key, digest in effects.items():
        try:
            yield {"type": "effect", **recorded_effect(archive, key, digest)}
        except UNREADABLE as error:
            yield {"type": "damaged", **gap_of(error, key, turn).document()}


def _summary(form: Form, archive: JobArchive, run: str, turn: int) -> Iterator[dict[str, Any]]:
    """A summary's call: as a step's line, or, without a reply, with its attempts alone."""
    step = archive.find_step(run, turn)
    if step is not None:
        # A form of its own: the next turn is told by the turn before it, and not by this prompt.
        own = type(form)(archive)
        yield {
            "type": "summary",
            **_step(own, archive, run, step),
            **own.layout(archive.turn_layout(run, turn)),
        }
    else:
        attempts = _attempts(type(form)(archive), archive, run, turn)
        yield {"type": "summary", "run": run, "turn": turn, "reply": None, "attempts": attempts}


def _step(form: Form, archive: JobArchive, run: str, step: Step) -> dict[str, Any]:
    return {
        **step.document(),
        "response": text_of(archive.wire_response(run, step.turn)),
        "chunks": [[chunk.at_us, chunk.size] for chunk in archive.chunks(run, step.turn)],
        "attempts": _attempts(form, archive, run, step.turn),
    }


def _attempts(form: Form, archive: JobArchive, run: str, turn: int) -> list[dict[str, Any]]:
    return [_attempt(form, archive, a.key, a.document()) for a in archive.attempts(run, turn)]


def _attempt(form: Form, archive: JobArchive, key: str, fields: dict[str, Any]) -> dict[str, Any]:
    """An attempt with its request; how it failed, or what else came back of it, with what was
    received.
    """
    failure = archive.failure(key)
    failed = {}
    if failure is not None:
        failed = {
            "failure": {**failure.document(), "response": text_of(archive.failed_response(key))}
        }
    exchange = archive.exchange(key)
    other = {}
    if exchange is not None:
        told = {**exchange.document(), "response": text_of(archive.exchanged_response(key))}
        other = {"exchange": told}
    return {**fields, "request": form.request(key), **failed, **other}
