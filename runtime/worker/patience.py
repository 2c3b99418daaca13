"""Workers that wait for a server which is away as they begin.

The SDK's own asks for its namespace first, once, and fails where nobody has answered for some
twenty seconds. When it has begun, it waits for as long as it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import cached_property

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError
from temporalio.worker import Worker

from runtime.base.errors import ServerError
from runtime.server.away import is_passing

PAUSE = 1.0
"""Seconds between two questions to a server that is away."""

_LONGEST = timedelta(seconds=10)
_REFUSED = "Worker validation failed"


class PatientWorker(Worker):
    """A worker that can be stopped also while it waits to begin."""

    begun = False

    @cached_property
    def leaving(self) -> asyncio.Event:
        """Set when it is to end."""
        return asyncio.Event()

    async def shutdown(self) -> None:
        """See ``Worker``."""
        self.leaving.set()
        # Of one that has not begun the SDK would wait for the end.
        if self.begun:
            await super().shutdown()


class Patience(SimplePlugin):
    """Has a ``PatientWorker`` begin once its server answers."""

    def __init__(self, client: Client) -> None:
        super().__init__("holdfast.patience")
        self._client = client

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """See ``SimplePlugin``.

        Raises:
            ServerError: if the server lets no worker begin.
        """
        assert isinstance(worker, PatientWorker)
        while not worker.leaving.is_set() and await self._is_away():
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.leaving.wait(), PAUSE)
        if worker.leaving.is_set():
            return
        worker.begun = True
        try:
            await next(worker)
        except RuntimeError as error:
            if not str(error).startswith(_REFUSED):
                raise
            told = " ".join(str(error).split())
            raise ServerError(f"no worker can begin at the Temporal server: {told}") from error

    async def _is_away(self) -> bool:
        try:
            await self._client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=self._client.namespace), timeout=_LONGEST
            )
        except RPCError as error:
            # What else it says, it says to the worker, too.
            return is_passing(error)
        return False
