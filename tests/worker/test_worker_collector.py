"""What the garbage collector does while a worker works."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime.base import collector
from runtime.base.collector import loading
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


def collections() -> tuple[list[Any], Callable[[str, dict[str, Any]], None]]:
    """Those that begin, and what notes them."""
    begun: list[Any] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            begun.append(info)

    return begun, note


@pytest.mark.usefixtures("of_a_worker")
def test_a_long_prompt_begins_no_collection_of_its_own() -> None:
    """Its messages are some thousands of objects, which go with the call."""
    prompt = told([part for number in range(REPLIES) for part in exchange(number)])
    begun, note = collections()
    gc.collect()
    gc.callbacks.append(note)
    try:
        messages = prompt.messages
    finally:
        gc.callbacks.remove(note)
    assert len(messages) == 2 * REPLIES
    assert begun == []


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.slow
def test_what_is_loaded_is_not_looked_through(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is made; in a process of ours never. What somebody else's process has is left to its
    collector, and so is all that comes later.
    """
    monkeypatch.setattr(collector, "_own", own)
    begun, note = collections()
    gc.callbacks.append(note)
    try:
        with loading():
            made = [[] for _ in range(100_000)]
            loaded = list(begun)
        looked_through = {id(one) for one in gc.get_objects()}
        later: list[Any] = []
        assert id(later) in {id(one) for one in gc.get_objects()}
    finally:
        gc.callbacks.remove(note)
        gc.unfreeze()
    assert loaded == []
    assert gc.isenabled()
    assert sum(id(one) in looked_through for one in made) == (0 if own else len(made))


def test_what_cannot_be_loaded_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the collector as it was."""
    monkeypatch.setattr(collector, "_own", True)
    frozen = gc.get_freeze_count()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
