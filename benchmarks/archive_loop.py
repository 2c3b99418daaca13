"""What durability and the archive add to a turn, against the same loop with neither.

The same job three times, its model a script that answers at once, through litellm each time:
``bare`` is the loop alone in one thread, ``archive`` the same with each call archived before and
after (fsync included), ``both`` a real worker on a real Temporal dev server with that archive. Each
figure is milliseconds a turn; the share of a turn that a model takes is 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from temporalio.testing import ActivityEnvironment

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from activities._captured import CapturedCall, SentRequest
from activities._litellm import ask
from activities._options import ModelOptions
from activities._secrets import Secrets
from activities.contracts import TurnCall
from activities.model import ModelActivities
from benchmarks.leaving import leave
from runtime.archive.stores import open_store
from runtime.base.home import Home
from runtime.base.spec.models import Budget, JobSpec, ModelSettings
from runtime.base.tokens import encoding
from runtime.base.values import JobKey, ModelReply, StepRef
from runtime.job.job import Job, Prompt
from runtime.projection.messages import messages_of, tools_of
from runtime.server.embedded import server_in_use

Call = Callable[[Job, Prompt], Awaitable[ModelReply]]


def main(turns: int) -> None:
    """Run the job in its three ways, and print a row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        bare, archived, both = asyncio.run(_measured(path, turns))
    print(
        f"{'turns':>5} {'bare ms':>8} {'archive ms':>10} {'both ms':>8} {'archive adds':>12}"
        f" {'both add':>9}"
    )
    print(
        f"{turns:>5} {bare:>8.2f} {archived:>10.2f} {both:>8.2f} {archived - bare:>12.2f}"
        f" {both - bare:>9.2f}",
        flush=True,
    )


async def _measured(path: Path, turns: int) -> tuple[float, float, float]:
    script = path / "script.yaml"
    statements = [f"x = {n}\nprint(x)" for n in range(turns - 1)] + ["finish(x)"]
    script.write_text(json.dumps([{"code": statement} for statement in statements]))
    (path / "workspace").mkdir()
    spec = JobSpec(
        id="loop",
        goal="Count.",
        workspace=str(path / "workspace"),
        model=ModelSettings(name=f"scripted/{script}"),
        budget=Budget(turns=turns + 1, tokens=10**12, usd=1e9),
    )
    # Once unmeasured, since the first call loads litellm.
    await _loop(spec.model_copy(update={"id": "warm"}), _asked)
    bare = await _loop(spec, _asked)
    archived = await _loop(spec, _Archived(path / "alone").call)
    return bare, archived, await _durable(spec, path)


async def _loop(spec: JobSpec, call: Call) -> float:
    """The job's turns as ``JobWorkflow`` has them, without Temporal; milliseconds a turn."""
    started = time.perf_counter()
    job = Job(spec, key="bench/loop", started=time.time(), count=encoding(spec.encoding).count)
    while job.stop(time.time()) is None:
        job.ingest((), time.time())
        job.due_reads(0.0)
        job.apply_tick(())
        prompt = job.project(time.time())
        assert isinstance(prompt, Prompt), "so few turns need no condensation"
        reply = await call(job, prompt)
        job.called(prompt, reply)
        statement = job.receive(reply, time.time())
        assert statement is not None
        statement.settle(statement.advance(None).verdict)
        job.record(statement, time.time())
    return (time.perf_counter() - started) / job.turn * 1000


async def _asked(job: Job, prompt: Prompt) -> ModelReply:
    """The call alone, with nothing kept."""

    def forget(request: SentRequest) -> str:
        return "nowhere"

    options = ModelOptions(name=job.spec.model.name)
    captured = CapturedCall(
        forget, limits=options.limits, secrets=Secrets(), turn=job.turn, temporal_attempt=1
    )
    answer = await ask(options, messages_of(prompt.layout), tools_of(job.spec.form), captured)
    return ModelReply(
        text=answer.text, tool_calls=answer.tool_calls, finish_reason=answer.finish_reason
    )


class _Archived:
    """The call as the model activity makes it, with an archive in a directory."""

    def __init__(self, path: Path) -> None:
        self._model = ModelActivities(open_store(str(path)))
        self._parent: StepRef | None = None

    async def call(self, job: Job, prompt: Prompt) -> ModelReply:
        """One turn's call."""
        call = TurnCall(
            key=JobKey(batch="bench", job=job.spec.id),
            turn=job.turn,
            parent=self._parent,
            layout=prompt.delta,
            model={"name": job.spec.model.name},
            reset_event_id=1,
            execution=prompt.execution,
            nodes=prompt.nodes,
        )
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, workflow_run_id="run")
        reply = await environment.run(self._model.call_model, call)
        self._parent = reply.step
        return reply


async def _durable(spec: JobSpec, path: Path) -> float:
    """The job on an embedded server with a worker in this process; the time is that of the
    workflow's run.
    """
    from temporalio.client import Client

    from runtime.server.authentic import key_of, signed_converter
    from runtime.server.embedded import NAMESPACE
    from runtime.worker.worker import running_worker
    from workflows.job import JobWorkflow
    from workflows.messages import TASK_QUEUE, JobOrder

    home = Home(path / "home")
    home.server.mkdir(parents=True)
    async with server_in_use(home) as server:
        client = await Client.connect(
            server.address, namespace=NAMESPACE, data_converter=signed_converter(key_of(home))
        )
        async with running_worker(client, open_store(str(path / "archive"))):
            order = JobOrder(key=JobKey(batch="bench", job=spec.id), spec=spec, definition="")
            handle = await client.start_workflow(
                JobWorkflow.run, order, id="bench", task_queue=TASK_QUEUE
            )
            outcome = await handle.result()
            assert outcome.status == "succeeded", outcome
            # By the server's times: the client's waiting is no part of the run.
            described = await handle.describe()
            assert described.close_time is not None
            return (
                (described.close_time - described.start_time).total_seconds() / outcome.turns * 1000
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    leave()
