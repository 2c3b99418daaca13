"""Rates and fairness as a provider counts them, with two workers on one Temporal server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from runtime.archive.stores import open_store
from runtime.base.spec.limits import Routes
from runtime.base.spec.models import Budget, JobSpec, Limit, Limits, ModelSettings
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id
from runtime.client.limits import limited, set_limit, set_limits
from runtime.server.process import SETTINGS
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


class Hall:
    """A Temporal server with the embedded one's settings, a provider, and two workers."""

    def __init__(self, client: Client, path: Path, provider: ProviderServer) -> None:
        self.client, self.path, self.provider = client, path, provider
        self.store = open_store(str(path / "archive"))
        self.routes = Routes(archive="hall", models=(MODELS,))
        self.queue = self.routes.queues[0]

    async def start(self, batch: str, jobs: int, turns: int) -> WorkflowHandle[Any, Any]:
        """Start a batch whose limited calls go by the queue."""
        model = {"api_base": f"{self.provider.address}/v1", "price": {"input": 0, "output": 0}}
        orders = tuple(
            JobOrder(
                key=JobKey(batch=batch, job=f"j{number}"),
                spec=JobSpec(
                    id=f"j{number}",
                    goal="Count.",
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
        submission = Submission(jobs=orders, concurrency=jobs, routes=self.routes)
        await handle.execute_update(BatchWorkflow.submit, submission)
        return handle

    async def calls(self, batch: str, jobs: int) -> list[tuple[float, float]]:
        """When each call of a batch was scheduled and given to a worker, by the server's clock."""
        found = []
        for number in range(jobs):
            job = job_workflow_id(JobKey(batch=batch, job=f"j{number}"))
            scheduled: dict[int, float] = {}
            async for event in self.client.get_workflow_handle(job).fetch_history_events():
                at = event.event_time.ToMicroseconds() / 1e6
                if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                    told = event.activity_task_scheduled_event_attributes
                    if told.task_queue.name == self.queue:
                        scheduled[event.event_id] = at
                started = event.activity_task_started_event_attributes.scheduled_event_id
                if started in scheduled:
                    found.append((scheduled[started], at))
        return found


@pytest.fixture
async def hall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hall]:
    """The hall, with both workers on the limited queue; one of them has the workflows too."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    arrivals: list[float] = []

    def respond(_messages: Any, _number: int) -> Any:
        arrivals.append(time.monotonic())
        return {"code": "x = 1"}

    async with _hall(tmp_path, ProviderServer(OpenAIProtocol(), respond)) as made:
        made.arrivals = arrivals  # type: ignore[attr-defined]
        yield made


@asynccontextmanager
async def _hall(path: Path, provider: ProviderServer) -> AsyncIterator[Hall]:
    settings = [f"{name}={value}" for name, value in SETTINGS.items() if "matching" in name]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(temporal_server(*settings))
        await stack.enter_async_context(provider.serving())
        made = Hall(server.client, path, provider)
        await stack.enter_async_context(
            make_worker(made.client, made.store, task_queue="hall", workspaces=path / "host")
        )
        address = made.client.service_client.config.target_host
        for _ in range(2):
            client = await Client.connect(address, data_converter=CONVERTER)
            queues = limited_queues(client, made.store)
            stack.push_async_callback(queues.close)
            await queues.want([made.queue])
        yield made


# One call at a time where few are let through: more would hide what is beyond the limit.
@pytest.mark.parametrize(
    ("minute", "jobs", "turns", "concurrent"),
    [(12, 12, 1, 1), (60, 10, 4, CONCURRENT), (600, 40, 5, CONCURRENT)],
)
async def test_no_ten_seconds_have_more_calls_than_the_limit(
    hall: Hall, minute: int, jobs: int, turns: int, concurrent: int
) -> None:
    """With two workers: as the provider counts, but for the burst and the calls that both have."""
    limit = Limit(requests_per_minute=minute, concurrent=concurrent)
    await set_limits(hall.client, hall.routes, Limits(models={MODELS: limit}))
    batch = await hall.start("rates", jobs, turns)
    await batch.result()
    arrivals = hall.arrivals  # type: ignore[attr-defined]
    assert len(arrivals) == jobs * turns
    most = minute / 6 + max(FIRST_BURST, minute / 60) + 2 * concurrent
    assert most < jobs * turns
    for first in arrivals:
        assert sum(first <= at < first + 10 for at in arrivals) <= most


async def test_a_small_batch_is_not_kept_by_a_large_one(hall: Hall) -> None:
    """Of the calls that wait, both get every other one; and the limit can be changed meanwhile."""
    limit = Limit(requests_per_minute=60, concurrent=CONCURRENT)
    await set_limits(hall.client, hall.routes, Limits(models={MODELS: limit}))
    large = await hall.start("large", 60, 1)
    await eventually(lambda: _all_begun(hall, "large", 60), "the large batch's calls wait")
    small = await hall.start("small", 3, 1)
    await small.result()
    await set_limit(hall.client, hall.queue, Limit(requests_per_minute=6000))
    await large.result()
    (state,) = await limited(hall.client, [hall.queue])
    assert (state.account.limit.requests_per_minute, state.rate) == (6000.0, 100.0)
    mine = await hall.calls("small", 3)
    others = await hall.calls("large", 60)
    waited_from, waited_to = max(at for at, _ in mine), max(at for _, at in mine)
    between = sum(waited_from < at < waited_to for _, at in others)
    assert between <= 2 * CONCURRENT + 2 * len(mine)


async def _all_begun(hall: Hall, batch: str, jobs: int) -> bool:
    """Whether each job of a batch has a call that waits or ran."""
    found = await asyncio.gather(
        *(
            hall.client.get_workflow_handle(
                job_workflow_id(JobKey(batch=batch, job=f"j{number}"))
            ).describe()
            for number in range(jobs)
        ),
        return_exceptions=True,
    )
    return all(
        not isinstance(one, BaseException)
        and (
            one.status != 1
            or any(
                pending.activity_type.name == "call_model"
                for pending in one.raw_description.pending_activities
            )
        )
        for one in found
    )
