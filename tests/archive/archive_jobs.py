"""Real archived jobs for tests: written through ``JobArchive`` as the model activity does, with
everything that a job can have.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.archive.checkpoints import write_checkpoint
from runtime.archive.forms import (
    Capture,
    Chunk,
    ExchangeReason,
    NewAttempt,
    NewEnd,
    NewExchange,
    NewFailure,
    NewStep,
    StoredReply,
)
from runtime.archive.job import JobArchive
from runtime.archive.replays import claim_replay, write_replay
from runtime.archive.stores import ObjectStore
from runtime.base.digests import canonical_json, digest_bytes
from runtime.base.values import StepRef, ToolCall, Usage
from runtime.job.condensed import CondensationOutcome
from runtime.projection.segments import Role, Segment, SegmentKind, delta_between


def segment(text: str, origin: str = "event:1", kind: SegmentKind = SegmentKind.MESSAGE) -> Segment:
    return Segment(kind=kind, origin=origin, role=Role.USER, text=text, tokens=len(text) // 4)


def letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.ascii_letters, k=count))


def wire_of(layout: Sequence[Segment]) -> bytes:
    messages = [{"role": s.role.value, "content": s.text} for s in layout]
    return json.dumps({"model": "m-1", "messages": messages, "stream": True}).encode()


def chat(
    rng: random.Random, size: int = 600
) -> Callable[[int, Sequence[Segment], Segment | None], list[Segment]]:
    """A chat that grows by the reply and a result, with a tail that changes each turn."""

    def layout(turn: int, previous: Sequence[Segment], reply: Segment | None) -> list[Segment]:
        kept = [s for s in previous if s.kind is not SegmentKind.BUDGET]
        if not kept:
            kept = [
                segment(
                    "The contract: \u00fc, \u4e16\u754c.\n" * 20, "contract", SegmentKind.CONTRACT
                )
            ]
        if reply is not None:
            kept.append(reply)
        kept.append(segment(f"Result {turn}\n{letters(rng, size)}", f"statement:{turn - 1}"))
        return [*kept, segment(f"{9000 - turn} tokens left", "tail", SegmentKind.BUDGET)]

    return layout


def blocks(
    rng: random.Random, count: int = 40, size: int = 1000
) -> Callable[[int, Sequence[Segment], Segment | None], list[Segment]]:
    """A projection of blocks, of which one, chosen at random, changes each turn."""
    now = [segment(letters(rng, size), f"node:{n}") for n in range(count)]

    def layout(turn: int, previous: Sequence[Segment], reply: Segment | None) -> list[Segment]:
        now[rng.randrange(count)] = segment(letters(rng, size), f"node:t{turn}")
        return list(now)

    return layout


@dataclass
class Written:
    """What went into a job's archive, for comparison with what comes out. Keys are (run, turn)."""

    archive: JobArchive
    heads: dict[str, StepRef] = field(default_factory=dict)
    refs: dict[tuple[str, int], StepRef] = field(default_factory=dict)
    requests: dict[tuple[str, int], bytes] = field(default_factory=dict)
    responses: dict[tuple[str, int], bytes] = field(default_factory=dict)
    layouts: dict[tuple[str, int], tuple[Segment, ...]] = field(default_factory=dict)

    def begin(
        self,
        run: str,
        turn: int,
        parent: StepRef | None,
        layout: Sequence[Segment],
        *,
        capture: Capture = Capture.WIRE,
        attempt: int = 1,
        request: bytes | None = None,
        through: tuple[str, ...] = (),
    ) -> str:
        previous = self.archive.layout(parent)
        delta = delta_between(previous, self.archive.reply_segment(parent), layout)
        request = wire_of(layout) if request is None else request
        self.requests[run, turn] = request
        self.layouts[run, turn] = tuple(layout)
        return self.archive.begin_attempt(
            NewAttempt(
                run=run,
                turn=turn,
                parent=parent,
                delta=delta,
                model={"name": "openai/m-1", "temperature": 0},
                capture=capture,
                request=request,
                url="http://127.0.0.1:9/v1/chat/completions",
                headers={"Content-Type": "application/json"},
                temporal_attempt=attempt,
                started_at=f"2026-01-01T00:{run_order(run):02d}:{turn % 60:02d}Z",
                through=through,
            )
        )

    def finish(
        self, run: str, turn: int, attempt: str, nodes: Sequence[dict[str, Any]] = ()
    ) -> StepRef:
        return self.finished(step_record(run, turn, attempt, nodes))

    def finished(self, record: NewStep) -> StepRef:
        self.responses[record.run, record.turn] = record.response
        ref = self.archive.finish_step(record)
        self.refs[record.run, record.turn] = self.heads[record.run] = ref
        return ref


def run_order(run: str) -> int:
    """Runs of tests are named so that a later one sorts after an earlier one."""
    return sum(run.encode()) % 60


def step_record(run: str, turn: int, attempt: str, nodes: Sequence[dict[str, Any]] = ()) -> NewStep:
    reply = StoredReply(
        text=f"I look at {turn}.",
        tool_calls=(
            ToolCall(
                id=f"call_{turn}", name="python", arguments=json.dumps({"code": f"x = {turn}"})
            ),
        ),
        finish_reason="tool_calls",
        response_id=f"chatcmpl-{turn}",
        tokens=12,
    )
    body = b"".join(
        b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in (turn, turn + 1)
    )
    return NewStep(
        run=run,
        turn=turn,
        attempt=attempt,
        reply=reply,
        response=body,
        chunks=(Chunk(at_us=1500, size=20), Chunk(at_us=90000, size=len(body) - 20)),
        status_code=200,
        headers={"content-type": "text/event-stream"},
        usage=Usage(prompt=100 + turn, completion=12),
        cost_usd=0.001,
        execution={"statement": turn - 1, "outcome": "ok"},
        nodes=tuple(nodes),
        reset_event_id=turn * 6,
        finished_at=f"2026-01-01T01:00:{turn % 60:02d}Z",
    )


def failure_record(attempt: str) -> NewFailure:
    """A stream that broke off."""
    body = b'data: {"choices":[{"delta":{"content":"I lo"}}]}\n\ndata: {"error":'
    return NewFailure(
        attempt=attempt,
        response=body,
        chunks=(Chunk(at_us=700, size=len(body)),),
        status_code=200,
        headers={"content-type": "text/event-stream"},
        error_type="StreamBroken",
        error_message="the connection was closed",
        failed_at="2026-01-01T01:00:00Z",
    )


def write_run(
    written: Written,
    run: str,
    turns: range,
    parent: StepRef | None,
    layout_at: Callable[[int, Sequence[Segment], Segment | None], list[Segment]],
) -> StepRef | None:
    """Turns of a run, one attempt each, three nodes of which one changes a turn."""
    for turn in turns:
        layout = layout_at(
            turn, written.archive.layout(parent), written.archive.reply_segment(parent)
        )
        attempt = written.begin(run, turn, parent, layout)
        nodes = [{"obj_id": f"view-{turn % 3}", "text": f"state {turn}", "lod": 0}]
        parent = written.finish(run, turn, attempt, nodes)
    return parent


def eventful_job(store: ObjectStore, batch: str = "nightly", job: str = "licences") -> Written:
    """A job over a keyframe (turn 32): tool results, a checkpoint, a failed attempt, a removed
    node, a replay, a summary, an end.

    Run ``a`` has turns 30 to 34 and an attempt in flight at 35; run ``b`` was reset to turn 33 of
    it by a replay, had a summary written before turn 35, and ended there.
    """
    written = Written(JobArchive(store, batch, job))
    archive, layout_at = written.archive, chat(random.Random(4), 200)
    archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    parent = write_run(written, "a", range(30, 32), None, layout_at)
    for effect in range(2):
        archive.write_effect("a", 31, effect, {"value": effect})
    layout = layout_at(32, archive.layout(parent), archive.reply_segment(parent))
    failed = written.begin("a", 32, parent, layout)
    archive.fail_attempt(failure_record(failed))
    attempt = written.begin("a", 32, parent, layout, attempt=2)
    nodes = [{"obj_id": "view-0", "removed": True}, {"obj_id": "view-9", "text": "new"}]
    parent = written.finish("a", 32, attempt, nodes)
    branch = parent
    parent = write_run(written, "a", range(33, 35), parent, layout_at)
    layout = layout_at(35, archive.layout(parent), archive.reply_segment(parent))
    written.begin("a", 35, parent, layout)
    write_replay(archive, "replay-1", {"start": 33}, "2026-01-01T00:30:00Z")
    claim_replay(archive, "replay-1", "b")
    parent = write_run(written, "b", range(33, 35), branch, layout_at)
    write_checkpoint(archive, run="b", turn=34, parent=parent, interpreter="monty", state={"x": 34})  # type: ignore[arg-type]
    summary = written.finish("b~1", 35, written.begin("b~1", 35, parent, [segment("Sum it up.")]))
    layout = layout_at(35, archive.layout(parent), archive.reply_segment(parent))
    forgotten = CondensationOutcome(
        id="35.1", condenser="llm", reason="events", forgotten=("30.1",), summary=summary
    )
    record = step_record(
        "b", 35, written.begin("b", 35, parent, layout), [{"obj_id": "view-2", "text": "state 35"}]
    )
    parent = written.finished(record.model_copy(update={"condensations": (forgotten,)}))
    archive.write_effect("b", 35, 0, {"value": "last"})
    written.heads["b"] = archive.write_end(
        NewEnd(
            run="b",
            turn=35,
            parent=parent,
            status="succeeded",
            result={"files": []},
            usage=Usage(prompt=9),
        )
    )
    return written


def rich_archive(store: ObjectStore) -> dict[str, Written]:
    """An archive with every kind of object, the jobs by name: ``licences`` (see ``eventful_job``),
    and ``short``, a fork of it with less than a keyframe's turns and two runs.

    The fork's first run lost a race and followed a redirect, was shown a summary of a group that a
    model wrote in the background, and tried one in vain; its second went on from the first one's
    last turn, for the first had been reset to there.
    """
    licences = eventful_job(store)
    short = Written(JobArchive(store, "nightly", "short"))
    archive, layout_at = short.archive, chat(random.Random(5), 120)
    archive.write_definition({"goal": "Find files, shortly", "model": "openai/m-1"})
    write_replay(archive, "fork-1", {"start": 34}, "2026-01-01T00:40:00Z")
    claim_replay(archive, "fork-1", "first")
    parent = licences.refs["b", 33]

    def take(run: str, turn: int, parent: StepRef) -> StepRef:
        layout = layout_at(turn, archive.layout(parent), archive.reply_segment(parent))
        redirected = short.begin(run, turn, parent, layout)
        archive.keep_exchange(
            NewExchange(attempt=redirected, reason=ExchangeReason.FOLLOWED, status_code=307)
        )
        slow = short.begin(run, turn, parent, layout, attempt=2)
        step = short.finish(run, turn, short.begin(run, turn, parent, layout, attempt=3))
        lost = step_record(run, turn, slow)
        archive.keep_exchange(
            NewExchange(
                attempt=slow,
                reason=ExchangeReason.SUPERSEDED,
                **lost.model_dump(
                    include={"reply", "response", "status_code", "headers", "usage", "cost_usd"}
                ),
            )
        )
        return step

    parent = take("first", 34, parent)
    material = canonical_json({"parts": [{"what": "a.py", "text": "x = 1"}]})
    kept_at = f"_holdfast/material/{digest_bytes(material).removeprefix('sha256:')}"
    store.put_if_absent(kept_at, material)
    side = short.finish(
        "first~group-34-0", 35, short.begin("first~group-34-0", 35, parent, [segment("Sum up.")])
    )
    in_vain = short.begin("first~group-34-1", 35, parent, [segment("Sum that up.")])
    archive.fail_attempt(failure_record(in_vain))
    summary = canonical_json(
        {"text": "It sets x.", "model": {"name": "m"}, "step": side.model_dump()}
    )
    store.put_if_absent("_holdfast/summaries/5e", summary)
    store.put_if_absent(
        "_holdfast/summaries/5e.claims/00000001", b'{"over":false,"owner":"first/1"}'
    )
    archive.write_effect(
        "first", 34, 0, {"results": ["It sets x."]}, uses=[kept_at, "_holdfast/summaries/5e"]
    )
    branch = parent = take("first", 35, parent)
    take("first", 36, parent)
    parent = take("second", 36, branch)
    write_checkpoint(
        archive, run="second", turn=36, parent=parent, interpreter="monty", state={"x": 36}
    )
    short.heads["second"] = archive.write_end(
        NewEnd(run="second", turn=36, parent=parent, status="succeeded")
    )
    return {"licences": licences, "short": short}
