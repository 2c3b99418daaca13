"""What the garbage collector does while a worker works."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.base.collector import loading, look_less_often
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


@pytest.fixture
def of_a_command() -> Iterator[None]:
    """The collector as a command sets it, and as it was."""
    before = gc.get_threshold()
    look_less_often()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("of_a_command")
def test_what_is_loaded_is_never_looked_through() -> None:
    """Neither as it is made nor later; all else is, from then on."""
    begun: list[Any] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            begun.append(info)

    frozen = gc.get_freeze_count()
    gc.callbacks.append(note)
    try:
        with loading():
            module = [{} for _ in range(100_000)]
        loaded = list(begun)
    finally:
        gc.callbacks.remove(note)
    assert loaded == []
    assert gc.get_freeze_count() - frozen >= len(module)
    assert gc.isenabled()


def test_garbage_of_a_process_that_is_not_ours_does_not_stay() -> None:
    """What somebody's program has left behind is collected before it would be kept for good."""

    class Left:
        """One that refers to itself."""

        def __init__(self) -> None:
            self.own = self

    gone: list[weakref.ref[Left]] = []
    before = gc.get_threshold()
    try:
        # As nobody's: no collection but the one that is looked for comes.
        gc.set_threshold(1_000_000)
        gone.append(weakref.ref(Left()))
        with loading():
            assert gone[0]() is None
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
