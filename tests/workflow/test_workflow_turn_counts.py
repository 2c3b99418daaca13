"""What a turn asks of the store, of the type checker and of the server, as counts: they are the
same on a busy machine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from infra.sizing.counts import A_TURN
from runtime.interpreter import checker
from runtime.job.stops import JobStatus
from tests.workflow.stage import Stage, activities_of, events_of

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 60

OF_THE_SDK = {
    "_WorkflowWorker._handle_activation",
    "_ActivityWorker._handle_start_activity_task",
    "Worker.poll_activity_task",
}
"""What the SDK makes a task for in each turn: two activations, an activity and a local one."""


class Counted:
    """Notes which operations of a store each turn asks for; a turn ends with its step's write."""

    def __init__(self, store: Any) -> None:
        self.now: Counter[str] = Counter()
        self.turns: list[Counter[str]] = []
        for name in ("put_if_absent", "get", "list"):
            setattr(store, name, self._noting(name, getattr(store, name)))

    def _noting(self, name: str, real: Any) -> Any:
        def operation(key: str, *arguments: Any) -> Any:
            self.now[name] += 1
            done = real(key, *arguments)
            if name == "put_if_absent" and key.endswith(".step"):
                self.turns.append(self.now)
                self.now = Counter()
            return done

        return operation


@contextmanager
def tasks_made() -> Iterator[Counter[str]]:
    """For what the running event loop makes tasks, by the names of coroutines."""
    loop, made = asyncio.get_running_loop(), Counter[str]()

    def make(of: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> asyncio.Task[Any]:
        made[coroutine.__qualname__] += 1
        return asyncio.Task(coroutine, loop=of, **how)

    before = loop.get_task_factory()
    loop.set_task_factory(make)
    try:
        yield made
    finally:
        loop.set_task_factory(before)


async def test_a_turn_asks_for_the_same_however_long_the_job_is(
    temporal: WorkflowEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two writes in the store, a look for its own step, and two for what lies beside the last turn;
    one activity, one marker, one checker; no task of the event loop but the SDK's own.
    """
    checker.close()
    stage = Stage(temporal.client, tmp_path, request.node.name)
    counted = Counted(stage.store)
    statements = [f"x = {n}\nprint('turn', x)" for n in range(TURNS - 1)] + ["finish(x)"]
    with tasks_made() as made:
        async with stage.open():
            outcome, _ = await stage.run(statements, turns=TURNS + 1)
    assert outcome.status is JobStatus.SUCCEEDED, outcome.reason
    usual = Counter({"put_if_absent": 2, "get": 1, "list": 2})
    assert usual == {"put_if_absent": A_TURN.writes, "get": A_TURN.reads, "list": A_TURN.lists}
    # At a keyframe the step names the definition again, which is out of memory by then.
    keyframe = usual + Counter({"list": 1, "get": 1})
    assert [turn for turn in counted.turns[2:] if turn != usual] == [keyframe]
    history = await stage.history()
    assert [name for name in activities_of(history) if name.startswith("turn-")] == [
        f"turn-{n}" for n in range(1, TURNS + 1)
    ]
    # And one that the run began by today's patches.
    assert len(events_of(history, "MARKER_RECORDED")) == TURNS + 1
    # An activity and a marker; a job has two activities of its own (infra/sizing/counts.py).
    assert A_TURN.actions == 2
    assert [name for name in activities_of(history) if "turn-" not in name] == ["begin", "end"]
    assert [warm.checks for warm in checker._idle] == [TURNS]
    assert {name for name, count in made.items() if count >= TURNS} == OF_THE_SDK
