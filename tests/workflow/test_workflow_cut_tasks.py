"""Workflow tasks that are cut while an activity within the worker runs: a replay takes their parts
for one task, whose time is that of the last part, unless one of them has a command.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from activities.verdicts import RecordedVerdict, record_verdict
from runtime.base.spec.models import ModelSettings
from runtime.job.stops import JobStatus
from runtime.worker import parts
from tests.eventually import SECONDS, eventually
from tests.workflow.stage import Stage, events_of
from tests.workflow.test_workflow_queries import ask_until
from workflows import patches
from workflows.calling import call_within, result_of
from workflows.messages import Note
from workflows.moment import Moment

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TASK = timedelta(seconds=2)
"""The limit of a workflow task: an activity within the worker that runs on cuts it at four fifths
of that.
"""

AGENT = """
import time
from pathlib import Path

def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages)
    asked, may = (Path(__file__).with_suffix(end) for end in (".asked", ".may"))
    if turn == 1:
        asked.touch()
        while not may.exists():
            time.sleep(0.01)
    return {"code": STATEMENTS[turn]}
"""


class Agent:
    """A model that gives ``statements`` in order, the second of them when it may."""

    def __init__(self, path: Path, statements: list[str]) -> None:
        self.name = f"scripted/{path}"
        self.asked, self.may = path.with_suffix(".asked"), path.with_suffix(".may")
        path.write_text(f"STATEMENTS = {statements!r}\n{AGENT}")


async def test_a_statement_begins_where_it_began(
    temporal: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows goes by the task in which the reply came: a wait that was over when the verdict
    was recorded is over then in a replay too.
    """
    stage = Stage(temporal.client, tmp_path, "cut-verdict")
    held, may = asyncio.Event(), asyncio.Event()
    may.set()

    @activity.defn(name="record_verdict")
    async def holding(verdict: RecordedVerdict | None) -> RecordedVerdict | None:
        held.set()
        await may.wait()
        return await record_verdict(verdict)

    monkeypatch.setattr(parts, "record_verdict", holding)
    agent = Agent(tmp_path / "agent.py", ["x = 1", "wait(1.5)", "finish(x)"])
    async with stage.open():
        handle = await stage.start(stage.spec(agent.name), TASK)
        await eventually(agent.asked.exists, "the model is asked again")
        await _end_a_task_without_a_command(handle)
        held.clear()
        may.clear()
        agent.may.touch()
        await held.wait()
        await _cut(handle)
        may.set()
        outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    await stage.replay_all()


async def test_a_look_before_material_is_kept_sees_the_same_again(
    temporal: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time, and how long the history is."""
    # By run of the code: a task that ends too late has all be done again.
    looks: dict[Moment, list[tuple[float, int]]] = {}
    look = Moment._look

    def noting(moment: Moment, worked: float | None) -> None:
        told = workflow.time(), workflow.info().get_current_history_length()
        looks.setdefault(moment, []).append(told)
        look(moment, worked)

    monkeypatch.setattr(Moment, "_look", noting)
    stage = Stage(temporal.client, tmp_path, "cut-material")
    for name in ("log.txt", "a.py", "b.py"):
        (stage.workspace / name).write_text("one = 1\n")
    agent = Agent(
        tmp_path / "agent.py",
        [
            "p = view('log.txt', freq='Sync')",
            "g = group(view('a.py'), view('b.py'), tokens=300)",
            "finish(p.text)",
        ],
    )
    writer = ModelSettings(name=stage.script(["one"] * 9))
    ticking, keeping = Held(stage.store, "/0000003.effect-"), Held(stage.store, "/material/")
    async with stage.open():
        handle = await stage.start(stage.spec(agent.name, summary_model=writer), TASK)
        await eventually(agent.asked.exists, "the model is asked again")
        (stage.workspace / "log.txt").write_text("two = 2\n")
        agent.may.touch()
        await eventually(ticking.there.is_set, "the tick has read the log")
        await _end_a_task_without_a_command(handle)
        ticking.may.set()
        await eventually(keeping.there.is_set, "the material is being kept")
        await _cut(handle)
        keeping.may.set()
        outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    live = list(looks.values())[-1]
    looks.clear()
    await stage.replay_all()
    assert list(looks.values()) == [live]


@workflow.defn
class Keeping:
    """Calls activities within the worker, two at a time one after the other."""

    @workflow.run
    async def run(self, calls: int) -> None:
        """So many pairs, an event of the server after each."""
        patches.begin()
        for number in range(calls):
            await call_within("keep", number, int)
            await call_within("keep", number, int)
            await result_of("keep", number, int, id=f"keep-{number}")

    @workflow.query
    def progress(self) -> dict[str, int]:
        """As a job answers it."""
        return {"turn": 0}


async def test_what_is_called_one_after_the_other_is_called_again(
    temporal: WorkflowEnvironment,
) -> None:
    """Queries cut tasks between the two of a pair: a replay comes to both in one."""

    @activity.defn
    async def keep(number: int) -> int:
        return number

    id, runner = uuid.uuid4().hex, UnsandboxedWorkflowRunner()
    async with Worker(
        temporal.client,
        task_queue=id,
        workflows=[Keeping],
        activities=[keep],
        workflow_runner=runner,
    ):
        handle = await temporal.client.start_workflow(Keeping.run, 50, id=id, task_queue=id)
        ended = asyncio.create_task(handle.result())
        await asyncio.gather(*(ask_until(handle, ended) for _ in range(3)), ended)
    replayer = Replayer(
        workflows=[Keeping],
        workflow_runner=runner,
        namespace=temporal.client.namespace,
        data_converter=temporal.client.data_converter,
    )
    await replayer.replay_workflow(await handle.fetch_history())


class Held:
    """The first write of a store under a key with ``part`` in it waits until it ``may``."""

    def __init__(self, store: Any, part: str) -> None:
        self.there, self.may = threading.Event(), threading.Event()
        put = store.put_if_absent

        def held(key: str, *arguments: Any) -> Any:
            if part in key and not self.there.is_set():
                self.there.set()
                assert self.may.wait(SECONDS)
            return put(key, *arguments)

        store.put_if_absent = held


async def _end_a_task_without_a_command(handle: WorkflowHandle[Any, Any]) -> None:
    """Have the job hear of something that changes nothing."""
    before = await _tasks(handle)
    await handle.signal("resume", Note.of("go on"))
    await _ended(handle, before + 1)


async def _cut(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until the workflow task that is under way has been cut."""
    await _ended(handle, await _tasks(handle) + 1)


async def _tasks(handle: WorkflowHandle[Any, Any]) -> int:
    return len(events_of(await handle.fetch_history(), "WORKFLOW_TASK_COMPLETED"))


async def _ended(handle: WorkflowHandle[Any, Any], tasks: int) -> None:
    async def so_many() -> bool:
        return await _tasks(handle) >= tasks

    await eventually(so_many, f"{tasks} workflow tasks have ended")
