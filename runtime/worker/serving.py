"""Workers for whatever batches are open on a server: what ``holdfast worker`` runs.

Each batch has a task queue of its own, so that ``holdfast run`` works on its own batch and leaves
the jobs of others, which may be on another machine or interrupted on purpose, alone. A job that was
reset or forked runs on also when its batch has ended; then it is the job that says where a worker
is wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import Worker

from runtime.archive.catalog import archive_id
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ServerError
from runtime.base.home import state_home
from runtime.base.workflow_ids import OPEN_BATCHES, OPEN_JOBS, job_key
from runtime.server.authentic import NotSigned
from runtime.worker.limited import LimitedQueues
from runtime.worker.presence import present
from runtime.worker.tidying import tidied
from runtime.worker.worker import limited_queues, make_worker, warm_up
from workflows.messages import batch_queue

LOOK_SECONDS = 2.0
"""How often new batches are looked for."""

WORKFLOW_TASKS = 2
"""Of each batch at a time: the batches share the interpreter processes."""

MOST_REFUSED = 256
"""Batches that are told to be refused; anybody who reaches a server can start some."""


@dataclass(frozen=True)
class OpenBatch:
    """A batch that runs, or has a job that does: its task queue, its archive's own name, that
    archive's address where it was started, and the queues by which its limited calls go.
    """

    queue: str
    archive: str
    store: str
    limited: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The batch's name."""
        return self.queue.removeprefix(batch_queue(""))


@dataclass
class BatchWorkers:
    """One worker for each open batch of the archive ``store``.

    ``tell`` is given a line for each that comes or goes.

    With a ``deployment``, the workers are that version of it (Temporal's worker versioning).
    ``allowed`` bounds what they take from this machine, as for ``make_worker``.
    """

    client: Client
    store: ObjectStore
    tell: Callable[[str], None]
    deployment: WorkerDeploymentVersion | None = None
    allowed: tuple[Path, ...] = ()
    only: str | None = None
    """The one batch that is worked on; None for all."""
    _running: dict[str, tuple[Worker, asyncio.Task[None]]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _identity: str | None = None

    async def serve(self) -> None:
        """Work until cancelled; then the calls in flight may end.

        Raises:
            ServerError: if a worker cannot go on.
        """
        await asyncio.to_thread(warm_up)
        own = await asyncio.to_thread(archive_id, self.store)
        home = state_home()
        async with tidied(home), present(self.client, home) as self._identity:
            limited = limited_queues(
                self.client, self.store, allowed=self.allowed, identity=self._identity
            )
            try:
                while True:
                    await self._look(own, limited)
                    await asyncio.sleep(LOOK_SECONDS)
            finally:
                await limited.close()
                await self._stop(set(self._running))

    async def _look(self, own: str, limited: LimitedQueues) -> None:
        try:
            batches = await self._open()
            batches |= await self._replayed(own, batches)
            if self.only is not None:
                wanted = batch_queue(self.only)
                batches = {queue: one for queue, one in batches.items() if queue == wanted}
        except RPCError as error:
            self.tell(f"the server does not answer ({error.message}); asking again")
            return
        await self._stop(self._running.keys() - batches.keys())
        for queue, (_, task) in self._running.items():
            if task.done():
                raise ServerError(f"the worker of {queue} stopped: {task.exception()}")
        for batch in batches.values():
            if batch.archive == own:
                self._start(batch)
            else:
                self._refuse(
                    batch.queue, f"its archive is {batch.store}, this worker's is {self.store}"
                )
        own_batches = (batch for batch in batches.values() if batch.archive == own)
        await limited.want(queue for batch in own_batches for queue in batch.limited)

    async def _open(self) -> dict[str, OpenBatch]:
        """The batches that run on the server, whoever works on them.

        What is not signed with this worker's key is told of.
        """
        batches: dict[str, OpenBatch] = {}
        async for execution in self.client.list_workflows(OPEN_BATCHES):
            queue = execution.task_queue
            try:
                memo = await execution.memo()
            except NotSigned as error:
                self._refuse(queue, error.message)
                continue
            # Whoever has the key names the archive; without a memo there is nothing to sign.
            if "archive" in memo:
                batches[queue] = OpenBatch(
                    queue,
                    str(memo["archive"]),
                    str(memo.get("store", "")),
                    tuple(map(str, memo.get("queues", ()))),
                )
        return batches

    def _refuse(self, queue: str, reason: str) -> None:
        """Tell, once, why there is no work on a queue."""
        if queue not in self._refused and len(self._refused) < MOST_REFUSED:
            self._refused.add(queue)
            self.tell(f"not working on batch {queue.removeprefix(batch_queue(''))}: {reason}")

    async def _replayed(self, own: str, batches: Mapping[str, OpenBatch]) -> dict[str, OpenBatch]:
        """The batches that have ended, but for a job of this archive that was reset or forked."""
        replayed: dict[str, OpenBatch] = {}
        others = (
            f" AND TaskQueue NOT IN ({', '.join(map(repr, sorted(batches)))})" if batches else ""
        )
        async for execution in self.client.list_workflows(OPEN_JOBS + others):
            if (queue := execution.task_queue) in replayed:
                continue
            try:
                memo = await execution.memo()
            except NotSigned as error:
                self._refuse(queue, error.message)
                continue
            archive = str(memo.get("archive", "")) or await asyncio.to_thread(
                self._archive_with, execution.id, own
            )
            if archive:
                replayed[queue] = OpenBatch(queue, archive, str(memo.get("store", "")))
        return replayed

    def _archive_with(self, workflow_id: str, own: str) -> str:
        """This archive's name if it has the job; a batch does not tell its jobs what its archive
        is.
        """
        key = job_key(workflow_id)
        return (
            own
            if key is not None and JobArchive.of(self.store, key).definition() is not None
            else ""
        )

    def _start(self, batch: OpenBatch) -> None:
        if batch.queue in self._running:
            return
        worker = make_worker(
            self.client,
            self.store,
            task_queue=batch.queue,
            workflow_tasks=WORKFLOW_TASKS,
            deployment=self.deployment,
            allowed=self.allowed,
            identity=self._identity,
        )
        self._running[batch.queue] = (worker, asyncio.create_task(worker.run()))
        self.tell(f"working on batch {batch.name}")

    async def _stop(self, queues: set[str]) -> None:
        stopped = [self._running.pop(queue) for queue in queues]
        await asyncio.gather(*(worker.shutdown() for worker, _ in stopped))
        await asyncio.gather(*(task for _, task in stopped), return_exceptions=True)
