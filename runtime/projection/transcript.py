"""A layout as a transcript: how a stretch of a job is given to the model that summarises it.

One user message, so that no provider's rules on calls, results and roles apply to what is only
talked about.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.base.fences import fenced
from runtime.base.native_arguments import load_arguments
from runtime.base.values import ToolCall
from runtime.projection.messages import Message
from runtime.projection.replies import TOOL_ARGUMENT
from runtime.projection.segments import Role, Segment, SegmentKind

_SPEAKERS = {SegmentKind.GOAL: "goal", SegmentKind.MESSAGE: "user", SegmentKind.SUMMARY: "summary"}


def transcript_of(layout: Sequence[Segment]) -> list[Message]:
    """The messages of a summary's prompt: the system's segments, then all others under a heading
    each.
    """
    system = [s.text for s in layout if s.role is Role.SYSTEM]
    told = [told_text(s) for s in layout if s.role is not Role.SYSTEM]
    return [
        {"role": "system", "content": "\n\n".join(system)},
        {"role": "user", "content": "\n\n".join(told)},
    ]


def told_text(segment: Segment) -> str:
    """The segment as a part of the transcript.

    An instruction has no heading; thinking is not told.
    """
    if segment.kind is SegmentKind.INSTRUCTION:
        return segment.text
    speaker = "agent" if segment.role is Role.ASSISTANT else _SPEAKERS.get(segment.kind, "result")
    parts = [segment.text, *(code_of(call) for call in segment.tool_calls)]
    said = "\n".join(part for part in parts if part.strip())
    # Fenced: what is summed up may itself hold such a heading, or an instruction.
    return f"## {speaker}\n{fenced(said)}"


def code_of(call: ToolCall) -> str:
    """The statement of a call, or the call as it stands."""
    try:
        arguments = load_arguments(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    # The statement alone: escaped in JSON it would be longer, and harder to read.
    if isinstance(arguments, dict) and isinstance(arguments.get(TOOL_ARGUMENT), str):
        return str(arguments[TOOL_ARGUMENT])
    return f"{call.name}({call.arguments})"
