"""One measurement of ``benchmarks.turn``, in a process of its own: a worker, and the jobs that it
runs, with the help of other processes if more than one was asked for.

``python -m benchmarks.turn_worker '{"address": ..., "folder": ..., ...}'`` prints the figures as
JSON. With a ``queue`` it is a helper: it says when it works, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from benchmarks.cpu_parts import Profiler
from benchmarks.leaving import leave
from benchmarks.peer import Peer, peer_worker, prompt_of
from runtime.interpreter.processor_time import processor_seconds

WARM_TURNS = 12

FLOOR, WHOLE, STAND_IN, PEER = "floor", "litellm", "stand-in", "peer"
"""What is measured: one bare activity a turn; jobs; jobs with a stand-in for litellm; durable
agents of pydantic-ai.
"""

PARTS = (
    ("/litellm/", "litellm"),
    ("/openai/", "litellm"),
    ("runtime/interpreter/checker.py", "type check (waiting for its process)"),
    ("runtime/interpreter/typecheck.py", "type check (waiting for its process)"),
    ("runtime/interpreter/objections.py", "type check (waiting for its process)"),
    ("runtime/interpreter/", "interpreter"),
    ("runtime/archive/", "archive"),
    ("runtime/projection/", "projection"),
    ("runtime/job/", "job"),
    ("runtime/context/", "context"),
    ("runtime/history/", "history"),
    ("runtime/server/authentic/", "signatures"),
    ("runtime/base/redaction/", "masking"),
    ("activities/", "activities"),
    ("workflows/", "workflows"),
    ("/temporalio/", "Temporal SDK"),
    ("/asyncio/", "event loop"),
    ("/concurrent/futures/", "event loop"),
)


class Load(BaseModel):
    """How many characters a job's prompt begins with, and how many each statement prints."""

    prompt: int = 10_000
    printed: int = 1_200

    @property
    def padding(self) -> str:
        """What makes a prompt as long as it is to be."""
        return "x7 " * (self.prompt // 3)


class Measurement(BaseModel):
    """What to measure."""

    address: str
    folder: Path
    kind: str
    jobs: int
    turns: int
    processes: int = 1
    load: Load = Load()
    profiled: bool = False
    queue: str = ""


class Figures(BaseModel):
    """What was measured. Processor times in seconds.

    ``host`` is that of the workers' processes, ``children`` that of their interpreters. ``marks``
    are this process's at the end of each turn, of the first job.
    """

    turns: int
    seconds: float
    host: float
    children: float
    parts: dict[str, float] = {}
    marks: list[float] = []


@workflow.defn(name="Floor", sandboxed=False)
class Floor:
    """A bare activity a turn."""

    @workflow.run
    async def run(self, turns: int) -> int:
        """So many."""
        for turn in range(turns):
            await workflow.execute_activity(
                nothing, turn, start_to_close_timeout=timedelta(seconds=60)
            )
        return turns


@activity.defn
async def nothing(turn: int) -> int:
    """Does nothing."""
    return turn


@dataclass
class Clock:
    """Processor time of this process and its helpers, and of all other children."""

    helpers: tuple[int, ...]
    began: float = field(default_factory=time.perf_counter)
    host: float = field(init=False)
    children: float = field(init=False)

    def __post_init__(self) -> None:
        helped = sum(map(processor_seconds, self.helpers))
        self.host = time.process_time() + helped
        self.children = children_seconds() - helped


def children_seconds() -> float:
    """The processor time of the children: of those that live, and of those that have ended."""
    ended = os.times()
    return (
        ended.children_user
        + ended.children_system
        + sum(map(processor_seconds, _children(os.getpid())))
    )


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _children(int(child))


async def measure(given: Measurement) -> Figures:
    """See the module's docstring."""
    measuring = {FLOOR: _floor, PEER: _peers}.get(given.kind, _jobs)
    return await measuring(given)


async def help_out(given: Measurement) -> None:
    """Work on the queue until the input ends."""
    working = {FLOOR: _floor_worker, PEER: _peer_worker}.get(given.kind, _jobs_worker)
    async with working(given, given.queue):
        print("working", flush=True)
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def _helped(given: Measurement, queue: str) -> AsyncIterator[tuple[int, ...]]:
    """The helpers' pids; they work within the block."""
    asked = given.model_copy(update={"queue": queue}).model_dump_json()
    helpers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.turn_worker", asked),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(given.processes - 1)
    ]
    try:
        for helper in helpers:
            assert helper.stdout is not None
            if not await helper.stdout.readline():
                raise RuntimeError("a helper ended before it worked")
        yield tuple(helper.pid for helper in helpers)
    finally:
        for helper in helpers:
            # Not without input: Python 3.11 would leave the helper's open.
            await helper.communicate(b"")


@asynccontextmanager
async def _floor_worker(given: Measurement, queue: str) -> AsyncIterator[Client]:
    client = await Client.connect(given.address)
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Floor],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
        # The SDK's own choice is a digest of all loaded code, which is longer in each event.
        build_id="floor",
    ):
        yield client


async def _floor(given: Measurement) -> Figures:
    queue = f"floor-{uuid.uuid4().hex}"
    async with _floor_worker(given, queue) as client, _helped(given, queue) as helpers:

        async def run(turns: int) -> None:
            await client.execute_workflow(Floor.run, turns, id=uuid.uuid4().hex, task_queue=queue)

        return await _side_by_side(given, helpers, run)


async def _side_by_side(
    given: Measurement, helpers: tuple[int, ...], run: Callable[[int], Awaitable[None]]
) -> Figures:
    """The figures of so many, each of which ``run`` does with so many turns."""
    # Unmeasured: what is made once is made in these.
    await asyncio.gather(*(run(WARM_TURNS) for _ in range(_warm_jobs(given))))
    clock = Clock(helpers)
    await asyncio.gather(*(run(given.turns) for _ in range(given.jobs)))
    return _figures(given, clock)


def _peer_worker(given: Measurement, queue: str) -> AbstractAsyncContextManager[Client]:
    return peer_worker(given.address, queue, given.load.printed)


async def _peers(given: Measurement) -> Figures:
    queue = f"peers-{uuid.uuid4().hex}"
    async with _peer_worker(given, queue) as client, _helped(given, queue) as helpers:

        async def run(turns: int) -> None:
            prompt = prompt_of(turns, given.load.padding)
            await client.execute_workflow(Peer.run, prompt, id=uuid.uuid4().hex, task_queue=queue)

        return await _side_by_side(given, helpers, run)


@asynccontextmanager
async def _jobs_worker(given: Measurement, queue: str) -> AsyncIterator[tuple[Client, Any]]:
    from runtime.archive.stores import open_store
    from runtime.worker.worker import running_worker
    from tests.servers.temporal_server import CONVERTER

    if given.kind == STAND_IN:
        _stand_in()
    client = await Client.connect(given.address, data_converter=CONVERTER)
    store = open_store(str(given.folder / "archive"))
    working: AbstractAsyncContextManager[Any] = running_worker(client, store, task_queue=queue)
    async with working:
        yield client, store


async def _jobs(given: Measurement) -> Figures:
    queue = f"jobs-{uuid.uuid4().hex}"
    async with _jobs_worker(given, queue) as (client, store), _helped(given, queue) as helpers:

        async def all_of(name: str, jobs: int, turns: int) -> None:
            await asyncio.gather(
                *(_run(client, given, queue, f"{name}-{n}-{queue}", turns) for n in range(jobs))
            )

        await all_of("warm", _warm_jobs(given), WARM_TURNS)
        # After the warm-up, whose steps are not to count.
        marks = Marks(store)
        profiler = Profiler(PARTS)
        clock = Clock(helpers)
        if given.profiled:
            profiler.start()
        await all_of("job", given.jobs, given.turns)
        parts = profiler.stop() if given.profiled else {}
        figures = _figures(given, clock)
    return figures.model_copy(update={"parts": parts, "marks": marks.host})


def _warm_jobs(given: Measurement) -> int:
    """How many jobs warm the workers: with several, so many that each of them has one."""
    return 1 if given.processes == 1 else 4 * given.processes


class Marks:
    """Notes the host's processor time whenever a step was put into a store."""

    def __init__(self, store: Any) -> None:
        self.host: list[float] = []
        self._put = store.put_if_absent
        store.put_if_absent = self._noting

    def _noting(self, key: str, *arguments: Any, **options: Any) -> Any:
        put = self._put(key, *arguments, **options)
        if key.endswith(".step"):
            self.host.append(time.process_time())
        return put


def _figures(given: Measurement, clock: Clock) -> Figures:
    now = Clock(clock.helpers)
    return Figures(
        turns=given.turns * given.jobs,
        seconds=now.began - clock.began,
        host=now.host - clock.host,
        children=now.children - clock.children,
    )


@asynccontextmanager
async def one_job(given: Measurement, queue: str) -> AsyncIterator[tuple[Client, str]]:
    """Run one job; within the block its workflow's id is known, and its worker works on."""
    async with _jobs_worker(given, queue) as (client, _):
        yield client, await _run(client, given, queue, f"job-{queue}", given.turns)


async def _run(client: Client, given: Measurement, queue: str, name: str, turns: int) -> str:
    """Run a job to its end; its workflow's id."""
    from runtime.base.spec.models import Budget, JobSpec, ModelSettings
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import TASK_LIMIT, job_workflow_id
    from runtime.job.stops import JobStatus
    from workflows.job import JobWorkflow
    from workflows.messages import JobOrder

    workspace = given.folder / "workspace"
    workspace.mkdir(exist_ok=True)
    spec = JobSpec(
        id=name,
        goal=f"Print what the script says. {given.load.padding}",
        workspace=str(workspace),
        model=ModelSettings(name=f"scripted/{_script(given.folder, turns, given.load.printed)}"),
        budget=Budget(turns=turns + 1, tokens=10**12, usd=1e9),
        context_tokens=10**7,
    )
    key = JobKey(batch="bench", job=name)
    workflow_id = job_workflow_id(key)
    outcome = await client.execute_workflow(
        JobWorkflow.run,
        JobOrder(key=key, spec=spec, definition=""),
        id=workflow_id,
        task_queue=queue,
        task_timeout=TASK_LIMIT,
    )
    assert outcome.status is JobStatus.SUCCEEDED, outcome
    return workflow_id


def _script(folder: Path, turns: int, printed: int) -> Path:
    """A model that has the interpreter print random text at each turn."""
    path = folder / f"script-{turns}-{printed}.yaml"
    if not path.exists():
        code = (
            "import random\n"
            f"print({{n}}, ''.join(random.choices('abcdefghijklmnopqrstuvwxyz ', k={printed})))"
        )
        statements = [code.format(n=n) for n in range(turns - 1)] + ["finish('done')"]
        path.write_text(json.dumps([{"code": statement} for statement in statements]))
    return path


def _stand_in() -> None:
    """Have the model activity ask the scripted provider itself, without litellm."""
    from activities import _model_turn, _scripted
    from activities._answer import AnswerBuilder
    from activities._captured import current

    async def ask(options: Any, messages: Any, tools: Any, captured: Any) -> Any:
        token = current.set(captured)
        try:
            builder = AnswerBuilder(captured.turn)
            file = options.name.removeprefix("scripted/")
            given = {"tools": tools} if tools else {}
            async for piece in _scripted.pieces(file, messages, given):
                builder.add(_chunk(piece))
            return builder.answer()
        finally:
            current.reset(token)

    _model_turn.ask = ask  # type: ignore[assignment]


def _chunk(delta: dict[str, Any]) -> Any:
    """A piece of the scripted provider's, in the form of litellm's chunks."""
    reason = delta.pop("finish_reason", None)
    calls = [
        SimpleNamespace(
            index=call["index"],
            id=call.get("id"),
            function=SimpleNamespace(**{"name": None, **call["function"]}),
        )
        for call in delta.pop("tool_calls", [])
    ]
    choice = SimpleNamespace(delta=SimpleNamespace(tool_calls=calls, **delta), finish_reason=reason)
    return SimpleNamespace(choices=[choice])


if __name__ == "__main__":
    asked = Measurement.model_validate_json(sys.argv[1])
    if asked.queue:
        asyncio.run(help_out(asked))
    else:
        print(asyncio.run(measure(asked)).model_dump_json())
    leave()
