"""Requests whose connection is broken off, as a server does of itself after some minutes, are sent
again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from activities.searchable import has_attributes
from runtime.server.histories import backwards
from runtime.server.pollers import is_polled
from runtime.server.rates import Account, account_of, keep_rate
from tests.servers.relay import Relay
from tests.servers.temporal_server import CONVERTER

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

GONE = WorkflowExecution(workflow_id="never-there", run_id="2a1ab9a6-2bd4-4a4b-9f53-6d0a4b3c6e11")


@pytest_asyncio.fixture(loop_scope="session")
async def relay(temporal: WorkflowEnvironment) -> AsyncIterator[Relay]:
    async with Relay(temporal.client.service_client.config.target_host).open() as relay:
        yield relay


async def _events(client: Client) -> str:
    try:
        async for _ in backwards(client, GONE):
            return "there"
    except RPCError as error:
        return error.status.name
    return "none"


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda client: account_of(client, "a-queue"), (Account(), None)),
        (lambda client: keep_rate(client, "another", Account(), time.time()), None),
        (lambda client: is_polled(client, "a-queue"), False),
        # Not None: it has said so.
        (has_attributes, False),
        (_events, "NOT_FOUND"),
    ],
    ids=["account", "rate", "pollers", "attributes", "history"],
)
async def test_a_request_that_is_broken_off_is_sent_again(
    relay: Relay, ask: Callable[[Client], Awaitable[object]], answer: object
) -> None:
    client = await Client.connect(relay.address, data_converter=CONVERTER)
    assert await ask(client) == answer
    relay.sever()
    assert await ask(client) == answer
    assert relay.severed == 1
