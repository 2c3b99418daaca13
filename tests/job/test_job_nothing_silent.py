"""Nothing pinned, no message of the user and no error is dropped for room without a line that says
so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_sessions import STATEMENTS, random_session

from runtime.base.spec.models import CondenserSpec, Sections
from runtime.history.content import TextPart
from runtime.history.events import (
    AgentErrorEvent,
    Condensation,
    Event,
    MessageEvent,
    MessageSource,
    ObservationEvent,
    StatementExecuted,
    is_shown,
)
from runtime.interpreter.executions import ExecutionStatus
from runtime.job.job import Job
from runtime.job.stops import JobFailed
from runtime.projection.segments import Segment, SegmentKind
from tests.tiers.tiers import examples

CONDENSERS = st.sampled_from(
    [
        (CondenserSpec(kind="extract"),),
        (CondenserSpec(kind="extract", max_size=9),),
        (CondenserSpec(kind="rolling"),),
        (CondenserSpec(kind="rolling", max_size=9),),
        (),
    ]
)
SECTIONS = st.sampled_from(
    [Sections(), Sections(views=150, groups=80, notes=64), Sections(history=400, views=300)]
)
_LEFT_OUT = re.compile(r"\[left out for room: ([^;]*); ")
SHOWN = (SegmentKind.VIEW, SegmentKind.GROUP, SegmentKind.NOTE)


def errors_of(job: Job) -> set[str]:
    """The ids of the events that tell of errors: results of statements that did not end well, and
    replies that were refused.
    """
    failed = {
        e.turn
        for e in job.log
        if isinstance(e, StatementExecuted) and e.status != ExecutionStatus.OK
    }
    return {
        e.id
        for e in job.log
        if isinstance(e, AgentErrorEvent) or (isinstance(e, ObservationEvent) and e.turn in failed)
    }


def dropped(job: Job) -> list[Event]:
    """What was shown once, is not any more, and has no summary in its place."""
    summed_up = {
        o
        for e in job.log
        if isinstance(e, Condensation) and e.summary
        for o in e.forgotten_event_ids
    }
    made = [
        *job.log,
        *(e.summary_event for e in job.log if isinstance(e, Condensation) and e.summary_event),
    ]
    here = {e.id for e in job.log.view}
    return [e for e in made if is_shown(e) and e.id not in here and e.id not in summed_up]


def check(job: Job, layout: Sequence[Segment]) -> None:
    """One prompt."""
    shown = {segment.origin: segment for segment in layout if segment.kind in SHOWN}
    told = {segment.origin: segment.text for segment in layout}
    marks = [
        _LEFT_OUT.match(s.text) for s in layout if s.kind is SegmentKind.MARK and s.origin == "tail"
    ]
    left_out = {name for mark in marks if mark for name in mark[1].split(", ")}
    for obj_id in job.graph.obj_ids:
        state = job.graph.state(obj_id)
        if state.pinned is None:
            continue
        place, text = job.places.known.get(obj_id), ""
        if place is None and f"node:{obj_id}" not in shown:
            # The last to go, in a prompt that is too small for it; a line at the end names it.
            assert job.surface.name(obj_id) in left_out
            continue
        if place is None or place.told is None:
            text = shown[f"node:{obj_id}"].text
        else:
            # What it became stands further down, in messages that are all there.
            assert place.told.shown and all(f"event:{update}" in told for update in place.updates)
            text = place.told.text
        whole = job.graph.render(obj_id).partition("\n")[2]
        assert text.endswith(whole) or re.search(
            r"\.\.\. \d+ more (lines|members|diff lines)\n[0-9a-f]+>>$", text
        ), text
    messages = {
        e.id for e in job.log if isinstance(e, MessageEvent) and e.source is MessageSource.USER
    }
    errors = errors_of(job)
    for event in job.log.view:
        if event.id in messages | errors and isinstance(
            event, MessageEvent | ObservationEvent | AgentErrorEvent
        ):
            text = "".join(part.text for part in event.content if isinstance(part, TextPart))
            assert text == told[f"event:{event.id}"]
    gone = {event.id for event in dropped(job)}
    [line] = [s.text for s in layout if s.text.startswith("[forgotten for room")] or [""]
    assert _number(r": ([\d,]+) events?", line) == len(gone)
    assert _number(r"([\d,]+) messages? of the user", line) == len(gone & messages)
    assert _number(r"([\d,]+) errors?", line) == len(gone & errors)


def _number(pattern: str, line: str) -> int:
    found = re.search(pattern, line)
    return int(found[1].replace(",", "")) if found else 0


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STATEMENTS | st.just("print(nothing)"), max_size=20),
    st.dictionaries(
        st.integers(1, 15), st.sampled_from([["be quick"], ["one", "two " * 150]]), max_size=4
    ),
    CONDENSERS,
    SECTIONS,
    st.sampled_from([2_700, 4_000, 30_000]),
)
def test_what_is_dropped_is_said(
    sources: list[str],
    messages: dict[int, list[str]],
    condenser: tuple[CondenserSpec, ...],
    sections: Sections,
    room: int,
) -> None:
    """In every prompt of random sessions: pinned nodes stand, cut or named where they say so; the
    rest stands, is summed up, or counted.
    """
    with TemporaryDirectory() as folder:
        options = {"context_tokens": room, "condenser": condenser, "sections": sections}
        loop = random_session(Path(folder), sources, options=options, messages=messages)
        try:
            while loop.job.stop(loop.now) is None:
                seen = len(loop.layouts)
                called = loop.job.called

                def checked(prompt, reply, called=called) -> None:  # type: ignore[no-untyped-def]
                    check(loop.job, prompt.layout)
                    called(prompt, reply)

                loop.job.called = checked  # type: ignore[method-assign]
                loop.turn()
                loop.job.called = called  # type: ignore[method-assign]
                assert len(loop.layouts) == seen + 1
        except JobFailed as error:
            # What must stay, all of it, is larger than the prompt may be: said at once, and nothing
            # was dropped for it.
            assert "when all that may be left out is left out" in str(error)
