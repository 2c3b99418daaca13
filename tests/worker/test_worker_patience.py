"""A server that is away as a worker begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from runtime.server.pollers import is_polled
from runtime.worker import patience
from runtime.worker.patience import Patience, PatientWorker
from tests.eventually import eventually
from tests.servers.relay import Relay

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

QUEUE = "of-a-patient-worker"
IN_VAIN = 50
"""Questions after which the SDK's own worker has failed."""


@activity.defn
async def nothing() -> None: ...


@pytest_asyncio.fixture(loop_scope="session")
async def relay(temporal: WorkflowEnvironment) -> AsyncIterator[Relay]:
    async with Relay(temporal.client.service_client.config.target_host).open() as relay:
        yield relay


@pytest_asyncio.fixture(loop_scope="session")
async def worker(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> PatientWorker:
    """A worker whose server has gone since it has a client of it."""
    monkeypatch.setattr(patience, "PAUSE", 0.001)
    client = await Client.connect(relay.address)
    await relay.leave()
    return PatientWorker(client, task_queue=QUEUE, activities=[nothing], plugins=[Patience(client)])


async def test_it_begins_when_its_server_is_back(
    temporal: WorkflowEnvironment, relay: Relay, worker: PatientWorker
) -> None:
    running = asyncio.create_task(worker.run())
    await eventually(lambda: relay.refused > IN_VAIN or running.done(), "it asks")
    relay.away = False
    await eventually(lambda: is_polled(temporal.client, QUEUE), "it asks for calls")
    await worker.shutdown()
    await running


async def test_it_can_be_stopped_while_it_waits(relay: Relay, worker: PatientWorker) -> None:
    running = asyncio.create_task(worker.run())
    await eventually(lambda: relay.refused > 0, "it asks")
    await worker.shutdown()
    await running
    assert not worker.begun
