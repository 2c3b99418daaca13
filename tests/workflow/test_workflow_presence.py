"""Workers that have died are told from those that are slow by the lock that each holds, not by how
long they are silent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from stage import Stage
from temporalio.api.enums.v1 import EventType, PendingActivityState, TaskQueueKind
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.home import Home
from runtime.base.spec.models import JobSpec, ToolSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import OPEN_JOBS
from runtime.client.standing import run_standing
from runtime.job.stops import JobStatus
from runtime.server.authentic import EncryptionKeys, codec, signed_converter
from runtime.worker import presence
from runtime.worker.presence import bury, present
from runtime.worker.worker import make_worker
from tests.eventually import eventually
from tests.servers.temporal_server import KEY

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WAITING = """
import time
from pathlib import Path

def respond(messages):
    calls, go = (Path(__file__).with_suffix(end) for end in (".calls", ".go"))
    made = calls.read_text() if calls.exists() else ""
    calls.write_text(made + "call\\n")
    while made == MADE and not go.exists():
        time.sleep(0.02)
    return REPLY
"""


def waiting(made: str, reply: dict[str, Any]) -> str:
    """A model with this reply, whose call behind the calls ``made`` waits until a file is there."""
    return f"MADE, REPLY = {made!r}, {reply!r}{WAITING}"


SLOW_ONCE = waiting("", {"code": "finish(1)"})
FAILS_ONCE = waiting(
    "call\n", {"code": "finish(1)", "fail": {"status": 500, "message": "busy"}, "times": 1}
)


async def identities(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """The workers that hold the job's activities."""
    return [
        pending.last_worker_identity
        for pending in (await handle.describe()).raw_description.pending_activities
    ]


async def listed(stage: Stage, spec: JobSpec) -> WorkflowHandle[Any, Any]:
    """A job that the server lists among the open ones, as it does some time after it has begun:
    among those the calls of dead workers are looked for.
    """
    handle = await stage.start(spec)

    async def is_listed() -> bool:
        query = f"{OPEN_JOBS} AND WorkflowId = '{handle.id}'"
        return (await stage.client.count_workflows(query)).count == 1

    await eventually(is_listed, "the job is listed")
    return handle


@asynccontextmanager
async def called(stage: Stage, identity: str) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """A job whose model is being called by a worker of that name: the first time until the file
    ``slow.go`` is there, or the block ends.
    """
    script = stage.path / "slow.py"
    script.write_text(SLOW_ONCE)
    stage.queue += f"-{identity[-4:]}"
    async with make_worker(stage.client, stage.store, task_queue=stage.queue, identity=identity):
        handle = await listed(stage, stage.spec(f"scripted/{script}"))
        try:
            await eventually(script.with_suffix(".calls").exists, "the model is called")
            yield handle
        finally:
            script.with_suffix(".go").touch()


async def test_the_call_of_a_dead_worker_is_made_again_at_once(
    tmp_path: Path, stage: Stage
) -> None:
    """While its lock is held nothing is taken from a worker; then its call is another's, long
    before it is missed.
    """
    home = Home(tmp_path / "home")
    home.workers.mkdir(parents=True)
    lock = FileLock(home.workers / "1@here-dead.lock")
    lock.acquire()
    async with called(stage, "1@here-dead") as handle:
        assert await bury(stage.client, home) == 0
        assert await identities(handle) == ["1@here-dead"]
        lock.release()
        assert await bury(stage.client, home) == 1
        assert list(home.workers.iterdir()) == []
        outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    assert (stage.path / "slow.calls").read_text() == "call\ncall\n"


def home_of_the_dead(path: Path) -> Home:
    """A state directory with the lock of the worker ``1@here-dead``, which nobody holds."""
    home = Home(path / "home")
    home.workers.mkdir(parents=True)
    (home.workers / "1@here-dead.lock").touch()
    return home


@pytest.mark.parametrize("identity, kept", [("1@here-dead", False), ("2@here-alive", True)])
async def test_a_job_is_kept_for_the_worker_that_has_it_in_memory_until_that_died(
    identity: str, kept: bool, tmp_path: Path, stage: Stage
) -> None:
    """What follows from a dead worker's call waits for nobody; a living one's job stays where it
    is.
    """
    async with called(stage, identity) as handle:
        assert await bury(stage.client, home_of_the_dead(tmp_path)) == (0 if kept else 1)
        if kept:
            (stage.path / "slow.go").touch()
        await handle.result()
    assert await is_sticky_after(handle, "turn-1") == kept


async def test_a_dead_workers_call_is_given_away_also_where_its_jobs_cannot_be_released(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not allow the one allows the other."""

    async def refused(*_: Any) -> None:
        raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")

    monkeypatch.setattr(presence, "release", refused)
    async with called(stage, "1@here-dead") as handle:
        assert await bury(stage.client, home_of_the_dead(tmp_path)) == 1
        assert (await handle.result()).status is JobStatus.SUCCEEDED


async def is_sticky_after(handle: WorkflowHandle[Any, Any], activity: str) -> bool:
    """Whether the task that an activity's end made waited for the job's own worker."""
    scheduled: int | None = None
    ended = False
    async for event in handle.fetch_history_events():
        if event.activity_task_scheduled_event_attributes.activity_id == activity:
            scheduled = event.event_id
        ended = ended or (
            scheduled is not None
            and event.activity_task_completed_event_attributes.scheduled_event_id == scheduled
        )
        if ended and event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
            queue = event.workflow_task_scheduled_event_attributes.task_queue
            return queue.kind == TaskQueueKind.TASK_QUEUE_KIND_STICKY
    raise AssertionError(f"no task followed {activity}")


WAITS = """
import time
from pathlib import Path

def kill() -> None:
    with Path(__file__).with_suffix(".calls").open("a") as calls:
        calls.write("call\\n")
    time.sleep(600)
"""


def deadly(stage: Stage) -> ToolSpec:
    """A tool in whose calls a worker may be taken for dead."""
    (stage.path / "deadly.py").write_text(WAITS)
    return ToolSpec(
        name="kill",
        target="deadly:kill",
        search_path=str(stage.path),
        stub="def kill() -> None: ...",
    )


def made_calls(stage: Stage) -> str:
    """A line for each time that the tool was called so far."""
    calls = stage.path / "deadly.calls"
    return calls.read_text() if calls.exists() else ""


async def died(stage: Stage, home: Home, *, calls: int) -> int:
    """How many calls the worker ``1@here-dead`` had when it died, as the tool was called for the
    last of ``calls`` times.
    """
    home.workers.mkdir(parents=True, exist_ok=True)
    with FileLock(home.workers / "1@here-dead.lock"):
        await eventually(
            lambda: made_calls(stage).count("call") == calls, f"the tool is called {calls} times"
        )
    return await bury(stage.client, home)


async def test_a_tool_in_whose_calls_workers_die_ends_its_own_job(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some workers in a row the call is given to none any more, and the job has failed by its
    tool.
    """
    monkeypatch.setattr(presence, "MOST_DEATHS", 3)
    home = Home(tmp_path / "home")
    tool = deadly(stage)
    stage.queue += "-deadly"
    async with make_worker(
        stage.client, stage.store, task_queue=stage.queue, identity="1@here-dead"
    ):
        handle = await listed(stage, stage.spec(["kill()", "finish(1)"], tools=(tool,)))
        for death in range(1, 4):
            assert await died(stage, home, calls=death) == 1
        outcome = await handle.result()
    assert outcome.status is JobStatus.FAILED
    assert outcome.reason.startswith("turn 1: WorkerKilled: 3 workers in a row died in this call")
    assert made_calls(stage) == "call\n" * 3


async def test_what_is_told_of_a_worker_that_died_is_encrypted_for_its_call(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who buried it, so that whoever reads the call's failure can read that too."""
    monkeypatch.setattr(presence, "MOST_DEATHS", 2)
    encrypted = signed_converter(KEY, EncryptionKeys((("one", b"k" * 32),)))
    stage.client = await Client.connect(stage.address, data_converter=encrypted)
    home = Home(tmp_path / "home")
    tool = deadly(stage)
    stage.queue += "-encrypted"
    async with make_worker(
        stage.client, stage.store, task_queue=stage.queue, identity="1@here-dead"
    ):
        handle = await listed(stage, stage.spec(["kill()", "finish(1)"], tools=(tool,)))
        assert await died(stage, home, calls=1) == 1
        key = JobKey(batch=stage.batch, job="job-1")
        trouble = (await run_standing(stage.client, key, await handle.describe())).trouble
        assert trouble is not None
        assert trouble.error == "WorkerDied: its worker 1@here-dead died"
        assert await died(stage, home, calls=2) == 1
        outcome = await handle.result()
    assert outcome.reason.startswith("turn 1: WorkerKilled: 2 workers in a row died in this call")


async def test_a_worker_that_died_after_a_failed_call_is_buried_without_a_warning(
    tmp_path: Path,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What its call said before is signed by a worker of this key, and nobody's forgery."""
    # Each refusal is logged once in a process.
    monkeypatch.setattr(codec, "_told", set())
    script = stage.path / "fails.py"
    script.write_text(FAILS_ONCE)
    calls = script.with_suffix(".calls")
    stage.queue += "-failed"
    async with make_worker(
        stage.client, stage.store, task_queue=stage.queue, identity="1@here-dead"
    ):
        handle = await listed(stage, stage.spec(f"scripted/{script}"))
        await eventually(
            lambda: calls.exists() and calls.read_text() == "call\ncall\n",
            "the model is called again",
        )
        assert await bury(stage.client, home_of_the_dead(tmp_path)) == 1
        assert (await handle.result()).status is JobStatus.SUCCEEDED
        script.with_suffix(".go").touch()
    assert "refused" not in caplog.text


async def is_scheduled(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether the job's tool is to be called, and no worker has the call."""
    scheduled = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return any(
        pending.activity_type.name == "call_tool" and pending.state == scheduled
        for pending in (await handle.describe()).raw_description.pending_activities
    )


async def test_calls_that_die_together_again_are_parted(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two, one is made at once and the other waits: so what kills its workers dies alone, and
    does not take the other's job with it.
    """
    monkeypatch.setattr(presence, "MOST_DEATHS", 3)
    monkeypatch.setattr(presence, "APART", timedelta(hours=1))
    home = Home(tmp_path / "home")
    tool = deadly(stage)
    stage.queue += "-together"
    async with make_worker(
        stage.client, stage.store, task_queue=stage.queue, identity="1@here-dead"
    ):
        handles = [
            await listed(stage, stage.spec(["kill()", "finish(1)"], tools=(tool,)))
            for _ in range(2)
        ]
        for made, had in ((2, 2), (4, 2), (5, 1)):
            assert await died(stage, home, calls=made) == had
        waits = [await is_scheduled(handle) for handle in handles]
        assert sorted(waits) == [False, True]
        ended, other = handles if waits[1] else reversed(handles)
        outcome = await ended.result()
        assert outcome.reason.startswith("turn 1: WorkerKilled: 3 workers in a row")
        assert await is_scheduled(other)
        assert made_calls(stage) == "call\n" * 5
        await other.cancel()
        assert (await other.result()).status is JobStatus.CANCELLED


async def test_a_worker_that_is_present_is_found_and_leaves_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    """Its lock is held for as long as it works, and its file goes with it."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    async with present(stage.client, home) as identity:
        assert [path.name for path in home.workers.iterdir()] == [f"{identity}.lock"]
        assert await bury(stage.client, home) == 0
        assert [path.name for path in home.workers.iterdir()] == [f"{identity}.lock"]
    assert list(home.workers.iterdir()) == []
