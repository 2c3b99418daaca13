"""The texts that the digests of a divergence stand for, as the archive has them: output, results of
effects, nodes, the job's result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.archive.job import JobArchive
from runtime.archive.printed import printed, told_of
from runtime.archive.recorded import recorded_effect, turn_record
from runtime.base.errors import NotFound
from runtime.job.divergence import Aspect, Divergence


@dataclass(frozen=True)
class Timeline:
    """A run with all that is before it."""

    archive: JobArchive
    run: str


@dataclass(frozen=True)
class Explained:
    """A divergence with its texts; each is None where the archive holds none."""

    divergence: Divergence
    recorded: str | None
    now: str | None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            **self.divergence.model_dump(mode="json"),
            "recorded_text": self.recorded,
            "now_text": self.now,
        }


def explained(divergence: Divergence, recorded: Timeline, now: Timeline) -> Explained:
    """A divergence of ``now`` from ``recorded``, with its texts."""
    return Explained(divergence, text_of(recorded, divergence), text_of(now, divergence))


def text_of(timeline: Timeline, divergence: Divergence) -> str | None:
    """What stood in ``timeline`` at the place that ``divergence`` is about."""
    match divergence.aspect:
        case Aspect.EFFECT_RESULT:
            number = int(divergence.subject.partition(" ")[0])
            value = recorded_effect(timeline.archive, timeline.run, divergence.turn, number)
            return _effect_text(value) if value is not None else None
        case Aspect.STDOUT | Aspect.STDERR:
            return _printed(timeline, divergence.turn, divergence.aspect)
        case Aspect.NODE:
            return _node(timeline, divergence.turn, divergence.subject)
        case Aspect.ARTIFACT:
            end = timeline.archive.end(timeline.run)
            return _plain(end.result) if end is not None and end.turn == divergence.turn else None
        case _:
            return None


def _effect_text(value: Mapping[str, Any]) -> str:
    """What a reading, a file call or a tool gave."""
    match value:
        case {"results": [{"error_type": None, "text": str(text)}]}:
            return text
        case {"results": [{"error_type": str(kind), "error_message": str(message)}]}:
            return f"{kind}: {message}"
        case {"error_type": str(kind), "error_message": str(message)}:
            return f"{kind}: {message}"
        case {"value": content}:
            return _plain(content)
        case _:
            return _plain(value)


def _printed(timeline: Timeline, turn: int, stream: Aspect) -> str | None:
    """What a statement printed: in an end, or in the next prompt."""
    try:
        execution = turn_record(timeline.archive, timeline.run, turn).execution
        if (text := printed(execution, stream)) is not None:
            return text
        return printed(execution, stream, told_of(timeline.archive, timeline.run, turn))
    except NotFound:
        return None


def _node(timeline: Timeline, turn: int, obj_id: str) -> str | None:
    """How the prompt after a turn showed a node."""
    try:
        layout = timeline.archive.turn_layout(timeline.run, turn + 1)
    except NotFound:
        return None
    shown = [s.text for s in layout if s.origin == f"node:{obj_id}"]
    return shown[-1] if shown else None


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
