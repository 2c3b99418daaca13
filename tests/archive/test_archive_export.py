"""Exports: each turn's news once, from which every prompt can be made again; and some turns
alone.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from archive_jobs import (
    Written,
    chat,
    eventful_job,
    failure_record,
    segment,
    step_record,
    write_run,
)

from runtime.archive.export import Turns, export_lines
from runtime.archive.export_forms import Delta, Form, Full
from runtime.archive.genai import genai_lines
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.projection.segments import Segment

Line = Mapping[str, Any]


class Reader:
    """Makes prompts of a delta export, as its description tells."""

    def __init__(self) -> None:
        self.segments: dict[str, Any] = {}
        self.layout: list[str] = []
        self.requests: dict[str | None, bytes] = {None: b""}

    def take(self, line: Line) -> tuple[list[Segment], list[bytes]]:
        assert not self.segments.keys() & line["new_segments"].keys(), "a text is told twice"
        self.segments |= line["new_segments"]
        made: list[str] = []
        for part in line["layout_delta"]:
            made += [part] if isinstance(part, str) else self.layout[slice(*part)]
        self.layout = made
        assert len(made) == line["segments"]
        attempts = line["attempts"] if line["type"] == "step" else [line]
        return [Segment.model_validate(self.segments[digest]) for digest in made], [
            *map(self.request, attempts)
        ]

    def request(self, attempt: Line) -> bytes:
        base = self.requests[attempt["request"]["base"]]
        wire = b"".join(
            base[slice(*part)] if isinstance(part, list) else _bytes(part)
            for part in attempt["request"]["parts"]
        )
        self.requests = {attempt["key"]: wire}
        return wire


def _bytes(part: Mapping[str, str]) -> bytes:
    return part["text"].encode() if "text" in part else base64.b64decode(part["base64"])


def of_prompts(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if line["type"] in {"step", "attempt"}]


def test_every_prompt_can_be_made_from_a_delta_export() -> None:
    """Layouts and the exact bytes of requests, over a failed attempt, a reset, and an attempt in
    flight.
    """
    job = eventful_job(MemoryStore())
    for run, turns in (("a", range(30, 36)), ("b", range(30, 36))):
        reader = Reader()
        lines = of_prompts(export_lines(job.archive, run, form=Delta))
        assert [line["turn"] for line in lines] == list(turns)
        for line in lines:
            layout, requests = reader.take(line)
            own = (line["run"], line["turn"])
            assert tuple(layout) == job.layouts[own]
            assert requests[-1] == job.requests[own]


@pytest.mark.slow
def test_a_delta_export_is_as_large_as_the_news() -> None:
    """Of ten times the turns it has ten times the bytes; whole requests would have a hundred times
    as many.
    """
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    write_run(job, "a", range(1, 301), None, chat(random.Random(3), 100))
    sizes = [
        sum(
            len(json.dumps(line))
            for line in export_lines(job.archive, "a", Turns(1, last), form=Delta)
        )
        for last in (30, 300)
    ]
    assert sizes[1] < 12 * sizes[0]
    assert sum(map(len, job.requests.values())) > 5 * sizes[1]


def test_some_turns_can_be_exported_alone() -> None:
    """The first of them is told in full; the end is told with the last turn."""
    job = eventful_job(MemoryStore())
    lines = list(export_lines(job.archive, "b", Turns(33, 34), form=Delta))
    assert [(line["type"], line.get("turn")) for line in lines] == [
        ("definition", None),
        ("step", 33),
        ("step", 34),
    ]
    reader = Reader()
    for line in of_prompts(lines):
        layout, requests = reader.take(line)
        assert (tuple(layout), requests[-1]) == (
            job.layouts["b", line["turn"]],
            job.requests["b", line["turn"]],
        )
    full = list(export_lines(job.archive, "b", Turns(33, 34)))
    assert full[1]["new_segments"].keys() == set(full[1]["layout"])
    assert [line["type"] for line in export_lines(job.archive, "b", Turns(35))] == [
        "definition", "summary", "step", "effect", "end",
    ]  # fmt: skip


def test_each_attempt_of_a_turn_without_a_reply_is_exported() -> None:
    """All that was sent, and what came of it."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    layout_at = chat(random.Random(1), 100)
    parent = write_run(written, "r", range(1, 3), None, layout_at)
    layout = layout_at(3, written.archive.layout(parent), written.archive.reply_segment(parent))
    for number in (1, 2, 3):
        attempt = written.begin("r", 3, parent, layout, attempt=number)
        written.archive.fail_attempt(failure_record(attempt))
    lines = list(export_lines(written.archive, "r", form=Delta))
    told = [line for line in lines if line["type"] == "attempt"]
    assert [(line["turn"], line["number"]) for line in told] == [(3, 1), (3, 2), (3, 3)]
    assert all(line["failure"] for line in told)
    reader = Reader()
    for line in of_prompts(lines):
        shown, requests = reader.take(line)
    assert (tuple(shown), requests[-1]) == (written.layouts["r", 3], written.requests["r", 3])


@pytest.mark.parametrize("form", [Full, Delta])
def test_a_prompt_that_is_gone_is_told_and_not_empty(form: type[Form]) -> None:
    """Of a call whose attempt was lost behind others: what became of the call is told without."""
    store = MemoryStore()
    written = Written(JobArchive(store, "b", "j"))
    write_run(written, "r", range(1, 7), None, chat(random.Random(1), 100))
    lost = "b/j/turns/r/00000/0000004.attempt-001"
    store.replace(lost, None)
    lines = list(export_lines(JobArchive(store, "b", "j"), "r", form=form))
    (at,) = [n for n, line in enumerate(lines) if line["type"] == "step" and line["turn"] == 4]
    told = {"type": "damaged", "turn": 4, "key": lost, "problem": "is not there"}
    assert (lines[at - 1], lines[at]["attempts"]) == (told, [])
    assert not lines[at].keys() & {"layout", "layout_delta", "stable_share"}
    assert [line["turn"] for line in lines if "layout_delta" in line or "layout" in line] == [
        1,
        2,
        3,
    ]


def test_a_span_tells_what_a_reasoning_item_says_in_short() -> None:
    """As it tells a thinking block; of one that cannot be read, the provider's own text."""
    thoughts = (
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "First I look."}]},
        {"type": "thinking", "thinking": "Then I count.", "signature": "s"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
    )
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    record = step_record("a", 1, job.begin("a", 1, None, [segment("Go on.", "event:1")]))
    reply = record.reply.model_copy(update={"thinking": thoughts})
    job.finished(record.model_copy(update={"reply": reply}))
    (span, _) = (
        line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        for line in genai_lines(job.archive, "a", None, [])
    )
    told = {one["key"]: one["value"].get("stringValue") for one in span["attributes"]}
    (said,) = json.loads(told["gen_ai.output.messages"])
    assert said["parts"][:3] == [
        {"type": "reasoning", "content": content}
        for content in ("First I look.", "Then I count.", "c2VhbGVk")
    ]
