"""Workers on the queues of roles: each makes the calls of one role, of all jobs of an archive whose
calls go by such queues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from temporalio import activity
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from runtime.base.errors import ServerError
from runtime.base.roles import VARIABLE, Role, Roles

LOOK_SECONDS = 2.0
"""How often it is looked whether the workers still work."""

MakeWorker = Callable[[Role], Worker]
"""A worker of a role, for the jobs of one archive."""


@dataclass
class RoleWorkers:
    """A worker for each role that is wanted but for turns, which go by batches' queues."""

    make: MakeWorker
    _running: dict[Role, tuple[Worker, asyncio.Task[None]]] = field(default_factory=dict)

    async def want(self, roles: Iterable[Role]) -> list[Role]:
        """Work for these roles too; which of them are new.

        Raises:
            ServerError: if a worker has stopped.
        """
        for role, (_, task) in self._running.items():
            # Told, since calls of that role would else wait without a word.
            if task.done():
                raise ServerError(f"the worker of role {role} stopped: {task.exception()}")
        wanted = set(roles) - {Role.TURNS} - self._running.keys()
        new = [role for role in Role if role in wanted]
        for role in new:
            worker = self.make(role)
            self._running[role] = worker, asyncio.create_task(worker.run(), name=role)
        return new

    async def follow(self, roles: Roles) -> NoReturn:
        """Work for these roles until cancelled.

        Raises:
            ServerError: as ``want``.
        """
        while True:
            await self.want(roles)
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Let the calls in flight end, and stop."""
        running = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(worker.shutdown() for worker, _ in running))
        await asyncio.gather(*(task for _, task in running), return_exceptions=True)


@activity.defn(dynamic=True)
async def others_work(arguments: Sequence[RawValue]) -> NoReturn:
    """What a worker that does turns alone says of any other call on a batch's queue: it is of a job
    that was started where workers had no roles. Another worker may take the next try.
    """
    raise ApplicationError(
        f"{activity.info().activity_type} is for workers without {VARIABLE}, as the job was started"
        " without it",
        type="AnothersWork",
    )
