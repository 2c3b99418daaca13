"""Every prompt that a job sent, put before the strict checkers of what OpenAI and Anthropic
refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runtime.archive import keys
from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.base.values import ToolCall
from runtime.projection.messages import messages_of
from runtime.projection.segments import Segment, SegmentKind
from runtime.projection.transcript import transcript_of
from tests.history.oracle.conversation import Message, Speaker
from tests.history.oracle.provider_rules import check_anthropic, check_openai
from tests.history.oracle.wire import anthropic_form


def violations_of(archive: JobArchive) -> list[str]:
    """What either provider would refuse in the prompts of all runs of a job, and of their
    summaries.
    """
    found: list[str] = []
    for run in archive.runs():
        for name in (run, *archive.side_runs(run)):
            for step in _own_steps(archive, name):
                found += [
                    f"{name}, turn {step.turn}: {v}"
                    for v in violations_in(archive.turn_layout(name, step.turn))
                ]
    return found


def unexplained(archive: JobArchive) -> list[str]:
    """The turns of all runs whose prompt does not begin as the one before, and whose step gives no
    reason for that.
    """
    return [
        f"{run}, turn {step.turn}: {step.prefix.broken} moved for no stated reason"
        for run in archive.runs()
        for step in _own_steps(archive, run)
        if step.prefix is not None and step.prefix.broken and not step.prefix.reason
    ]


def _own_steps(archive: JobArchive, run: str) -> Iterator[Step]:
    """The steps that a run made itself: a job of fifty runs has those before it in each."""
    own = keys.run_prefix(archive.prefix, run)
    for key in archive.store.list(own):
        if key.endswith(".step"):
            yield archive.step_at(key)


def violations_in(layout: Sequence[Segment]) -> list[str]:
    """What either provider would refuse in the prompt of a layout."""
    own = layout[0].kind is SegmentKind.INSTRUCTION
    messages = transcript_of(layout) if own else messages_of(layout)
    originals = [segment.thinking for segment in layout if segment.thinking]
    found = [f"openai: {v}" for v in check_openai(messages)]
    return found + [
        f"anthropic: {v}" for v in check_anthropic(anthropic_form(_values(messages)), originals)
    ]


def _values(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """Messages in litellm's form, as values of the history room."""
    made = []
    for message in messages:
        calls = [
            ToolCall(
                id=call["id"],
                name=call["function"]["name"],
                arguments=call["function"]["arguments"],
            )
            for call in message.get("tool_calls", ())
        ]
        made.append(
            Message(
                Speaker(message["role"]),
                message["content"] or "",
                calls=tuple(calls),
                call_id=message.get("tool_call_id"),
                thinking=tuple(message.get("thinking_blocks", ())),
            )
        )
    return made
