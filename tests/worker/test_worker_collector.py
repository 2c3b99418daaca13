"""What the garbage collector does while a worker works."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.base.values import ToolCall
from runtime.projection.messages import told
from runtime.projection.segments import Role, Segment, SegmentKind, reply_segment
from runtime.worker.worker import _leave_alone

REPLIES = 800


@pytest.fixture
def of_a_worker() -> Iterator[None]:
    """The collector as a worker sets it, and as it was."""
    before = gc.get_threshold()
    _leave_alone.__wrapped__()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def exchange(number: int) -> tuple[Segment, Segment]:
    """A reply with a call, and the result of that."""
    call = ToolCall(id=f"call_{number}", name="python", arguments="{}")
    reply = reply_segment(turn=number, text="", tool_calls=[call], thinking=[], tokens=1)
    result = {"kind": SegmentKind.RESULT, "origin": f"statement:{number}", "role": Role.TOOL}
    return reply, Segment(**result, text="done", tokens=1, tool_call_id=call.id)


@pytest.mark.usefixtures("of_a_worker")
def test_a_long_prompt_begins_no_collection_of_its_own() -> None:
    """Its messages are some thousands of objects, which go with the call."""
    prompt = told([part for number in range(REPLIES) for part in exchange(number)])
    begun: list[Any] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            begun.append(info)

    gc.collect()
    gc.callbacks.append(note)
    try:
        messages = prompt.messages
    finally:
        gc.callbacks.remove(note)
    assert len(messages) == 2 * REPLIES
    assert begun == []
