"""A statement that the type checker refused is refused again, or tried again later: never run because time was short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from plain_loop import Run

from runtime.interpreter import pool
from runtime.interpreter.typecheck import GaveUp


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A checker that is stopped before it can answer, as on a machine that is overloaded."""
    pool.close()
    monkeypatch.setattr(pool._checking, "kill_seconds", 0.001)
    yield
    pool.close()


def test_a_refusal_without_time_to_repeat_it_fails_the_task(
    run: Run, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replayed in time it is the same; without, the replay stops where a live statement would have run unchecked."""
    with monkeypatch.context() as patch:
        patch.setattr(pool._checking, "kill_seconds", pool.CHECK_SECONDS)
        loop = run("print('never', view(1))", "x = 1")
        assert loop.executions[0].exception is not None
        assert loop.executions[0].exception.type == "TypeCheckError"
        assert loop.again().run().executions == loop.executions
    pool.close()
    with pytest.raises(GaveUp, match="too much time"):
        loop.again().run()
    live = run("print('never', view(1))", "x = 1")
    assert live.executions[0].exception is not None
    assert live.executions[0].exception.message.startswith("view: path must be")
