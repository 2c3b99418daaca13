"""Workers that make the calls of tools with a queue of their own, and do nothing else: what
``holdfast worker --queue NAME`` runs.

They need the machine that the tools need, and no provider's key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from runtime.archive.catalog import archive_id
from runtime.archive.stores import ObjectStore
from runtime.base.home import state_home
from runtime.base.spec.limits import named_queue
from runtime.worker.presence import present
from runtime.worker.tidying import tidied
from runtime.worker.worker import make_queue_worker


@dataclass(frozen=True)
class QueueWorkers:
    """A worker for each of the ``queues``, of jobs whose archive is ``store``.

    ``tell`` is given a line for each. ``allowed`` bounds what they take from this machine, as for
    ``make_worker``.
    """

    client: Client
    store: ObjectStore
    tell: Callable[[str], None]
    queues: tuple[str, ...]
    allowed: tuple[Path, ...] = ()

    async def serve(self) -> None:
        """Work until cancelled; then the calls in flight may end."""
        own = await asyncio.to_thread(archive_id, self.store)
        home = state_home()
        async with tidied(home), present(self.client, home) as identity:
            workers = [
                make_queue_worker(
                    self.client,
                    self.store,
                    named_queue(queue, own),
                    allowed=self.allowed,
                    identity=identity,
                )
                for queue in self.queues
            ]
            running = [asyncio.create_task(worker.run()) for worker in workers]
            for queue in self.queues:
                self.tell(f"making the calls of tools with queue {queue}")
            try:
                await asyncio.gather(*running)
            finally:
                await asyncio.gather(*(worker.shutdown() for worker in workers))
                await asyncio.gather(*running, return_exceptions=True)
