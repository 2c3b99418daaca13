"""What a job adds to its workflow's history, turn by turn: bytes, new text, activities, and writes
to the archive.

Turn ``N`` is what stands in the history from the scheduling of its model call up to that of the
next turn's. Its new text is what nobody could leave out: the text of the reply, and the texts of
the segments that its prompt has and the one before had not. The job here has a context of 60,000
tokens, nearly all of them one large file in view.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from activities.contracts import TurnCall, TurnReply
from runtime.archive import keys
from runtime.job.stops import JobStatus
from runtime.server.authentic.compression import decompressed
from runtime.server.authentic.encryption import payloads_in
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage

TURNS = 200
CONTEXT_TOKENS = 60_000
MOST_BYTES = 2_450
"""What a turn may add to the history beyond its new text."""

Read = TypeVar("Read", TurnCall, TurnReply)

_MODEL_CALL = re.compile(r"turn-(\d+)")


@dataclass
class TurnSize:
    """One turn in the history: bytes of its events, bytes of its new text (UTF-8), and the
    activities it scheduled.
    """

    turn: int
    bytes: int = 0
    text_bytes: int = 0
    events: int = 0
    activities: list[str] = field(default_factory=list)

    @property
    def beyond_text(self) -> int:
        """Bytes beyond the new text itself."""
        return self.bytes - self.text_bytes


@dataclass(frozen=True)
class HistorySize:
    """The figures of one job.

    ``slope`` is by how many bytes ``beyond_text`` grows from one turn to the next.
    """

    turns: int
    prompt_tokens: int
    history_bytes: int
    prompt_bytes: int
    beyond_text: tuple[int, ...]
    slope: float
    activities: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def median(self) -> int:
        """Bytes a turn beyond its new text, of the turn in the middle."""
        return int(statistics.median(self.beyond_text))


async def measure(client: Client, path: Path, turns: int = TURNS) -> HistorySize:
    """Run the job on a server and weigh its history.

    The first two turns, which open the file and are the first to show it, and the last are left
    out.
    """
    stage = Stage(client, path, "nightly")
    # A path of fixed length, since it stands in each call.
    with tempfile.TemporaryDirectory(prefix="hold", dir="/tmp") as folder:
        model = _lay_out(stage.workspace, Path(folder), turns)
        async with stage.open():
            outcome, archive = await stage.run(
                f"scripted/{model}", turns=turns + 10, context_tokens=100_000
            )
    assert outcome.status is JobStatus.SUCCEEDED, outcome.reason
    history = await stage.history()
    sizes = turn_sizes(history)[2:-1]
    found = [key for path in archive.store.list("") if (key := keys.parse_turn_key(path))]
    written = Counter(key.turn for key in found if key.kind in {"attempt", "step"})
    bodies = [len(archive.wire_request(outcome.run, turn)) for turn in range(1, turns + 1)]
    return HistorySize(
        turns=outcome.turns,
        prompt_tokens=sum(
            segment.tokens for segment in archive.turn_layout(outcome.run, outcome.turns)
        ),
        history_bytes=sum(event.ByteSize() for event in history.events),
        prompt_bytes=sum(bodies),
        beyond_text=tuple(size.beyond_text for size in sizes),
        slope=_slope([size.beyond_text for size in sizes]),
        activities=tuple(len(size.activities) for size in sizes),
        writes=tuple(written[size.turn] for size in sizes),
    )


def _lay_out(workspace: Path, folder: Path, turns: int) -> Path:
    """Write the large file, and the script of the model, whose path is returned."""
    (workspace / "large.txt").write_text(
        "".join(f"{n} the quick brown fox {n * n}\n" for n in range(6_000))
    )
    statements = [f"large = view('large.txt', tokens={CONTEXT_TOKENS})"]
    statements += [f"x{n % 7} = {n}\nprint('turn', {n}, 'has', x{n % 7})" for n in range(2, turns)]
    model = folder / "model.yaml"
    model.write_text(json.dumps([{"code": code} for code in [*statements, "finish(x1)"]]))
    return model


async def measured_alone(path: Path) -> HistorySize:
    """The measurement on a server of its own."""
    async with temporal_server() as environment:
        return await measure(environment.client, path)


def turn_sizes(history: WorkflowHistory) -> list[TurnSize]:
    """The turns of a history, in order; what is before the first model call and from the end on
    belongs to none.
    """
    sizes: list[TurnSize] = []
    for event in history.events:
        name = event.activity_task_scheduled_event_attributes.activity_id
        if name == "end":
            break
        if call := _MODEL_CALL.fullmatch(name):
            sizes.append(TurnSize(turn=int(call[1])))
        if sizes:
            size = sizes[-1]
            size.bytes += plain_bytes(event)
            size.events += 1
            size.text_bytes += sum(len(text.encode()) for text in _new_texts(event))
            size.activities += [name] if name else []
    return sizes


def plain_bytes(event: HistoryEvent) -> int:
    """The bytes of an event whose payloads are as they were before they were compressed."""
    saved = sum(len(decompressed(one).data) - len(one.data) for one in payloads_in(event))
    return event.ByteSize() + saved


def _new_texts(event: HistoryEvent) -> Iterator[str]:
    """The texts of new segments where a model call was scheduled, the reply where it completed."""
    for payload in event.activity_task_scheduled_event_attributes.input.payloads:
        if (call := _read(TurnCall, payload)) is not None:
            yield from call.layout.added_texts
    for payload in event.activity_task_completed_event_attributes.result.payloads:
        if (reply := _read(TurnReply, payload)) is not None:
            yield reply.text
            yield from (call.arguments for call in reply.tool_calls)


def _read(kind: type[Read], payload: Payload) -> Read | None:
    try:
        return kind.model_validate_json(decompressed(payload).data)
    except ValueError:
        return None


def _slope(values: list[int]) -> float:
    """By how much a value grows each turn: the least-squares line through ``values``."""
    return statistics.linear_regression(range(len(values)), values).slope
