"""Records the histories that ``test_histories_replay.py`` replays: ``python -m
tests.histories.record [KIND ...]``.

A history here is that of a job as some release ran it. Record anew only what a release changed on
purpose: a history that no longer replays is a job that this release would break in mid-run. Paths
in it are those of a directory that is gone.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from temporalio.client import WorkflowHistory

from activities.record import ReplayMode, ReplayOrder, RunName
from runtime.base.spec.models import CondenserSpec, ModelSettings
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.forks import ForkPoint, forks
from runtime.client.resets import outcome_of_reset, reset
from tests.eventually import eventually, until_phase, until_turn
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage, events_of
from workflows.messages import Note

HERE = Path(__file__).parent
_IDENTITY = re.compile(r"\d+@[\w.-]+")
"""Names the machine that a worker ran on, which is nobody's business here."""

EFFECTS = [
    "a = view('a.py', tokens=100)\ng = group(a, tokens=100).Run(freq='Sync')",
    "print(open('a.py').read())\nimport random\nr = random.random()",
    "a.Run(freq='Sync')\nprint(1 // 0)",
    "no statement",
    "finish({'r': r > 0})",
]
SLEEPS = [
    "a = view('a.py', freq='Sync')\np = view('a.py', freq=('Periodic', 0.2))\nwait(3)",
    "wait_for(a, timeout=3)",
    "wait_for(a, timeout=60)",
    "finish(a.text)",
]
PREPARES = """
def respond(messages):
    if "programmer who will work with" in str(messages[0]["content"]):
        return "- one() gives 1"
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    return {"code": {
        1: "a = view('a.py', freq='Async')\\nb = view('a.py', lod=2, tokens=300)\\ng = group(a, b, lod=2, tokens=400)",
        8: "finish([a.text, b.text, g.text])",
    }.get(turn, "wait(0.3)")}
"""
SUMS_UP = """
def respond(messages):
    if messages[0]["content"].startswith("Write a summary"):
        return "Summed up."
    turn = int(str(messages[-1]["content"]).rpartition("budget: turn ")[2].split()[0])
    return {"code": "finish(turn)" if turn == 14 else f"turn = {turn}\\nprint('turn {turn} ran')"}
"""
BUSY = "n = 0\nwhile n < 400_000:\n    n += 1"


async def simple(stage: Stage) -> None:
    """Statements alone."""
    await stage.run(["x = 1", "x += 1", "print(x)", "finish(x)"], id="job")


async def effects(stage: Stage) -> None:
    """Reads, a tick, an error, a statement that the checker refuses, a message."""
    handle = await stage.start(stage.spec([{"code": "n = 0", "delay": 0.3}, *EFFECTS], id="job"))
    await handle.signal("message", Note.of("hello"))
    await handle.result()


async def condensation(stage: Stage) -> None:
    """Old turns go, and an extract stands in their place."""
    await stage.run(
        [*(f"print('{n} ' * 50)" for n in range(12)), "finish(None)"],
        id="job",
        condenser=(CondenserSpec(kind="extract", max_size=8),),
    )


async def summary(stage: Stage) -> None:
    """Old turns go, and a summary that a model writes stands in their place."""
    await stage.run(
        _policy(stage, SUMS_UP),
        id="job",
        condenser=(CondenserSpec(kind="summary", max_size=12),),
    )


async def asleep(stage: Stage) -> None:
    """Periodic readings in a sleep, a wait that times out, and one that a message ends."""
    handle = await stage.start(stage.spec(SLEEPS, id="job"))
    # Each sleep begins with a timer, and each of the three has another for its time.

    async def asleep_for_the_third_time() -> bool:
        return len(events_of(await handle.fetch_history(), "TIMER_STARTED")) >= 6

    await eventually(asleep_for_the_third_time, "the job sleeps for the third time")
    await handle.signal("message", Note.of("wake up"))
    await handle.result()


async def background(stage: Stage) -> None:
    """An async view, and summaries of a view and of a group that a model writes; all land at
    ticks.
    """
    model = _policy(stage, PREPARES)
    await stage.run(model, id="job", summary_model=ModelSettings(name=model))


async def cancelled(stage: Stage) -> None:
    """A job whose user cancels it while the model thinks."""
    handle = await stage.start(stage.spec(["n = 1", {"code": "n = 2", "delay": 60}], id="job"))
    await until_turn(handle, 2)
    await until_phase(handle, "model")
    await handle.cancel()
    await handle.result()


async def continued(stage: Stage) -> None:
    """Several runs, each from the checkpoint of the one before."""
    spec = stage.spec(["a = view('a.py').Run(freq='Sync')", *[BUSY] * 12, "finish(n)"], id="job")
    await (await stage.start(spec, timedelta(seconds=2))).result()


async def reset_frozen(stage: Stage) -> None:
    """A reset that executes the record again, answered from it."""
    outcome, _ = await stage.run(EFFECTS, id="job")
    source = RunName(batch=stage.batch, job="job", run=outcome.run)
    order = ReplayOrder(
        id=uuid.uuid4().hex, start=2, mode=ReplayMode.REEXECUTE, source=source, frozen=True
    )
    made = await reset(stage.client, stage.store, JobKey(batch=stage.batch, job="job"), order)
    await outcome_of_reset(stage.client, made)


async def forked(stage: Stage) -> None:
    """A fork that restores two turns out of the archive, executes a statement that a user wrote,
    and goes on.
    """
    outcome, _ = await stage.run(EFFECTS, id="other")
    source = RunName(batch=stage.batch, job="other", run=outcome.run)
    order = ReplayOrder(id=uuid.uuid4().hex, start=3, statement="r = 1")
    point = ForkPoint(source, 3)
    (made,) = await forks(stage.client, stage.store, point, {"job": order}, stage.queue)
    await outcome_of_reset(stage.client, made)


async def batch(stage: Stage) -> None:
    """Two jobs of a batch, one at a time."""
    orders = tuple(stage.order(["finish(1)"], id=name) for name in ("job", "second"))
    handle = await stage.submit(*orders, concurrency=1)
    await handle.result()


def _policy(stage: Stage, text: str) -> str:
    path = stage.path / "policy.py"
    path.write_text(text)
    return f"scripted/{path}"


KINDS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "simple": simple,
    "effects": effects,
    "condensation": condensation,
    "summary": summary,
    "asleep": asleep,
    "background": background,
    "cancelled": cancelled,
    "continued": continued,
    "reset": reset_frozen,
    "fork": forked,
    "batch": batch,
}
"""Each kind of job, and what runs one."""


def read(kind: str) -> list[WorkflowHistory]:
    """The recorded histories of a kind, oldest run first."""
    return [
        history_of(gzip.decompress(path.read_bytes()).decode())
        for path in sorted(HERE.glob(f"{kind}-*.json.gz"))
    ]


def history_of(text: str) -> WorkflowHistory:
    """A history by the workflow id that it is of: its payloads are signed for that."""
    first, *_ = json.loads(text)["events"]
    return WorkflowHistory.from_json(
        first["workflowExecutionStartedEventAttributes"]["workflowId"], text
    )


async def record(kinds: list[str]) -> None:
    """Run a job of each kind on a server of its own, and keep the histories of all its runs."""
    async with temporal_server() as environment:
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix="hold") as folder:
                await record_kind(Stage(environment.client, Path(folder), kind), kind, HERE)


def _clear(folder: Path, kind: str) -> None:
    for old in folder.glob(f"{kind}-*.json.gz"):
        old.unlink()


async def record_kind(stage: Stage, kind: str, folder: Path) -> None:
    """Run a job of a kind on ``stage``, and keep the histories of all its runs in ``folder``, in
    place of those there.
    """
    (stage.workspace / "a.py").write_text("def one():\n    return 1\n")
    async with stage.open():
        await KINDS[kind](stage)
    _clear(folder, kind)
    wanted = (
        batch_workflow_id(stage.batch)
        if kind == "batch"
        else f"{batch_workflow_id(stage.batch)}/job"
    )
    runs = [item async for item in stage.client.list_workflows(f"WorkflowId = '{wanted}'")]
    for number, item in enumerate(sorted(runs, key=lambda item: item.start_time), 1):
        history = await stage.client.get_workflow_handle(
            item.id, run_id=item.run_id
        ).fetch_history()
        text = _IDENTITY.sub("worker", history.to_json())
        data = gzip.compress(text.encode(), 9, mtime=0)
        (folder / f"{kind}-{number}.json.gz").write_bytes(data)


if __name__ == "__main__":
    asked = sys.argv[1:] or list(KINDS)
    if unknown := set(asked) - KINDS.keys():
        sys.exit(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    asyncio.run(record(asked))
