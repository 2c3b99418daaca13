"""Rates, fairness and priority as a provider counts them, with two workers on one Temporal
server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowHandle

from runtime.archive.stores import open_store
from runtime.base.spec.limits import Routes
from runtime.base.spec.models import Budget, JobSpec, Limit, Limits, ModelSettings
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.limits import limited, set_limit, set_limits
from runtime.server.process import SETTINGS
from runtime.server.rates import account_of, keep_rate
from runtime.worker.worker import limited_queues, make_worker
from tests.eventually import eventually
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import ProviderServer
from tests.servers.temporal_server import CONVERTER, temporal_server
from workflows.batch import BatchWorkflow
from workflows.messages import BatchOrder, JobOrder, Submission

pytestmark = [pytest.mark.server, pytest.mark.slow]

MODELS = "openai/*"
CONCURRENT = 4
"""Calls at a time of each of the two workers: so many may come late, and so together."""
FIRST_BURST = 6
"""Calls that the server lets through at once, or those of a second."""
FAST = 6000
"""Calls a minute of a queue that is to keep nobody waiting."""


@dataclass
class Counter:
    """A provider that counts: when each call arrived, and of which batch. It answers while its
    ``gate`` is open.
    """

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    arrivals: list[tuple[float, str]] = field(default_factory=list)

    def respond(self, messages: list[dict[str, Any]], _number: int) -> Any:
        """Answer a call of a job, whose goal is its batch's name."""
        said = str(messages[1]["content"])
        self.arrivals.append((time.monotonic(), said.partition("batch ")[2].partition(".")[0]))
        return {"code": "x = 1", "gate": self.gate}

    @property
    def batches(self) -> list[str]:
        """The batches whose calls arrived, in order."""
        return [batch for _, batch in self.arrivals]


class Hall:
    """A Temporal server with the embedded one's settings, a provider, and workers."""

    def __init__(self, stack: AsyncExitStack, client: Client, path: Path) -> None:
        self._stack = stack
        self.client, self.path = client, path
        self.store = open_store(str(path / "archive"))
        self.routes = Routes(archive="hall", models=(MODELS,))
        self.queue = self.routes.queues[0]
        self.counter = Counter()
        self.provider = ProviderServer(OpenAIProtocol(), self.counter.respond)

    async def work(self, workers: int, limit: Limit) -> None:
        """Have so many workers on the limited queue, each with its calls at a time."""
        await set_limits(self.client, self.routes, Limits(models={MODELS: limit}))
        address = self.client.service_client.config.target_host
        for _ in range(workers):
            client = await Client.connect(address, data_converter=CONVERTER)
            queues = limited_queues(client, self.store)
            self._stack.push_async_callback(queues.close)
            await queues.want([self.queue])

    async def start(
        self, batch: str, jobs: int, turns: int, priority: int | None = None
    ) -> WorkflowHandle[Any, Any]:
        """Start a batch whose limited calls go by the queue."""
        model = {"api_base": f"{self.provider.address}/v1", "price": {"input": 0, "output": 0}}
        orders = tuple(
            JobOrder(
                key=JobKey(batch=batch, job=f"j{number}"),
                spec=JobSpec(
                    id=f"j{number}",
                    goal=f"Count for batch {batch}.",
                    workspace=str(self.path),
                    model=ModelSettings(name="openai/local", options=model),
                    budget=Budget(turns=turns),
                ),
                definition="",
            )
            for number in range(jobs)
        )
        handle = await self.client.start_workflow(
            BatchWorkflow.run,
            BatchOrder(batch=batch),
            id=batch_workflow_id(batch),
            task_queue="hall",
        )
        routes = self.routes.model_copy(update={"priority": priority})
        submission = Submission(jobs=orders, concurrency=jobs, routes=routes)
        await handle.execute_update(BatchWorkflow.submit, submission)
        return handle

    async def wait_in_line(self, calls: int) -> None:
        """Wait until so many calls wait in the queue: no worker has them, or had.

        A job's call is scheduled, as its description says, before it stands in the queue.
        """

        async def all_wait() -> bool:
            described = await self.client.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=self.client.namespace,
                    task_queue=TaskQueue(name=self.queue),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                    report_stats=True,
                ),
                retry=True,
            )
            return described.stats.approximate_backlog_count >= calls

        await eventually(all_wait, f"{calls} calls wait in the queue")


@pytest.fixture
async def hall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hall]:
    """The hall, with a worker for the batches and none on the limited queue."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    settings = [f"{name}={value}" for name, value in SETTINGS.items() if "matching" in name]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(temporal_server(*settings))
        made = Hall(stack, server.client, tmp_path)
        await stack.enter_async_context(made.provider.serving())
        await stack.enter_async_context(
            make_worker(made.client, made.store, task_queue="hall", workspaces=tmp_path / "host")
        )
        yield made


# One call at a time where few are let through: more would hide what is beyond the limit.
@pytest.mark.parametrize(
    ("minute", "jobs", "turns", "concurrent"),
    [(12, 12, 1, 1), (60, 10, 4, CONCURRENT), (600, 32, 4, CONCURRENT)],
)
async def test_no_ten_seconds_have_more_calls_than_the_limit(
    hall: Hall, minute: int, jobs: int, turns: int, concurrent: int
) -> None:
    """With two workers: as the provider counts, but for the burst and the calls that both have."""
    hall.counter.gate.set()
    await hall.work(2, Limit(requests_per_minute=minute, concurrent=concurrent))
    batch = await hall.start("rates", jobs, turns)
    await batch.result()
    arrivals = [at for at, _ in hall.counter.arrivals]
    assert len(arrivals) == jobs * turns
    most = minute / 6 + max(FIRST_BURST, minute / 60) + 2 * concurrent
    assert most < jobs * turns
    for first in arrivals:
        assert sum(first <= at < first + 10 for at in arrivals) <= most


async def test_a_small_batch_is_not_kept_by_a_large_one(hall: Hall) -> None:
    """Of the calls that wait, both get every other one; and the limit can be changed meanwhile.

    A call that a busy server could not hand over in time goes to the end of its queue, so not all
    of the small batch's are among the first half of all calls; in turn they would be the last six.
    """
    await hall.work(2, Limit(requests_per_minute=FAST / 2, concurrent=CONCURRENT))
    large = await hall.start("large", 60, 1)
    held = 2 * CONCURRENT
    # The workers have as many calls as they take, which are answered when all others wait.
    await eventually(lambda: len(hall.counter.arrivals) == held, "the workers are busy")
    await hall.wait_in_line(60 - held)
    small = await hall.start("small", 6, 1)
    await hall.wait_in_line(60 - held + 6)
    await set_limit(hall.client, hall.queue, Limit(requests_per_minute=FAST))
    hall.counter.gate.set()
    await small.result()
    await large.result()
    (state,) = await limited(hall.client, [hall.queue])
    assert (state.account.limit.requests_per_minute, state.rate) == (FAST, FAST / 60)
    batches = hall.counter.batches
    assert (len(batches), set(batches[:held])) == (66, {"large"})
    assert batches[: len(batches) // 2].count("small") >= 3


async def test_the_lower_number_comes_first(hall: Hall) -> None:
    """Calls that wait are begun by their batches' ``priority``, whoever came first."""
    await hall.work(1, Limit(requests_per_minute=FAST, concurrent=1))
    started = [await hall.start("before", 1, 1)]
    await eventually(lambda: hall.counter.batches == ["before"], "the worker is busy")
    for number, priority in enumerate((5, None, 2, 4, 1), 1):
        started.append(await hall.start(f"p{priority or 3}", 3, 1, priority))
        await hall.wait_in_line(3 * number)
    hall.counter.gate.set()
    for one in started:
        await one.result()
    expected = ["before", *(f"p{priority}" for priority in range(1, 6) for _ in range(3))]
    assert hall.counter.batches == expected


async def test_a_limit_that_a_worker_writes_over_is_set_again(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It steers the queue by what it read before the limit was changed."""
    written = asyncio.Event()

    async def until_written(_: float) -> None:
        await written.wait()

    monkeypatch.setattr("runtime.client.limits.asyncio", SimpleNamespace(sleep=until_written))

    async def is_fast() -> bool:
        account, _ = await account_of(hall.client, hall.queue)
        return account.limit == Limit(requests_per_minute=FAST)

    await set_limit(hall.client, hall.queue, Limit(requests_per_minute=1))
    read, _ = await account_of(hall.client, hall.queue)
    setting = asyncio.create_task(
        set_limit(hall.client, hall.queue, Limit(requests_per_minute=FAST))
    )
    await eventually(is_fast, "the limit is set")
    await keep_rate(hall.client, hall.queue, read, time.time())
    assert not await is_fast()
    written.set()
    await setting
    assert await is_fast()
