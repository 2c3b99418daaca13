"""Workers for whatever batches are open on a server: what ``holdfast worker`` runs.

Each batch has a task queue of its own, so that ``holdfast run`` works on its own batch and leaves
the jobs of others, which may be on another machine or interrupted on purpose, alone. A job that was
reset or forked runs on also when its batch has ended; then it is the job that says where a worker
is wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import Worker

from runtime.archive.catalog import archive_id
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ArchiveError, ServerError
from runtime.base.home import state_home
from runtime.base.roles import EVERY, MEMO, VARIABLE, Role, Roles
from runtime.base.spec.limits import QUEUES, is_of, role_of
from runtime.base.workflow_ids import OPEN_BATCHES, OPEN_JOBS, job_key, open_on
from runtime.server.authentic import NotSigned
from runtime.server.rates import OLDER_LOOKS, queues_of
from runtime.worker.limited import LimitedQueues
from runtime.worker.presence import present
from runtime.worker.role_workers import RoleWorkers
from runtime.worker.tidying import tidied
from runtime.worker.worker import limited_queues, make_worker, role_workers, warm_up
from workflows.messages import batch_queue

LOOK_SECONDS = 2.0
"""How often new batches are looked for."""

WORKFLOW_TASKS = 4
"""Of each batch at a time: the batches share the interpreter processes.

The SDK leaves one to jobs that no worker has in memory: of two, one did all turns of a batch. With
eight a process makes some 7 % more turns a second, and has 50 MB more of interpreters.
"""

MOST_REFUSED = 256
"""Batches that are told to be refused; anybody who reaches a server can start some."""


@dataclass(frozen=True)
class OpenBatch:
    """A batch that runs, or has a job that does: its task queue, its archive's own name, that
    archive's address where it was started, the queues by which its limited calls go, and whether
    its other calls are ``split`` over the queues of roles.
    """

    queue: str
    archive: str
    store: str
    limited: tuple[str, ...] = ()
    split: bool = False

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

    With ``roles`` they do their part of the batches that are split, and leave others alone unless
    they have all; without, they do everything.
    """

    client: Client
    store: ObjectStore
    tell: Callable[[str], None]
    deployment: WorkerDeploymentVersion | None = None
    allowed: tuple[Path, ...] = ()
    only: str | None = None
    """The one batch that is worked on; None for all."""
    roles: Roles | None = None
    _running: dict[str, tuple[Worker, asyncio.Task[None]]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _of_jobs: dict[str, set[str]] = field(default_factory=dict)
    """By the queues of batches: the limited ones that open jobs began with, when last looked."""
    _looks: int = 0
    _identity: str | None = None

    async def serve(self) -> None:
        """Work until cancelled; then the calls in flight may end.

        Raises:
            ServerError: if a worker cannot go on.
        """
        await asyncio.to_thread(warm_up, self._roles)
        own = await asyncio.to_thread(archive_id, self.store)
        home = state_home()
        async with tidied(home), present(self.client, home) as self._identity:
            limited = limited_queues(
                self.client,
                self.store,
                allowed=self.allowed,
                identity=self._identity,
                roles=self._roles,
            )
            others = role_workers(
                self.client, self.store, own, allowed=self.allowed, identity=self._identity
            )
            try:
                await self._help(others, self.roles or ())
                while True:
                    await self._look(own, limited, others)
                    await asyncio.sleep(LOOK_SECONDS)
            finally:
                # Side by side: whoever waited for the others to drain would take calls until then.
                await asyncio.gather(
                    limited.close(), others.close(), self._stop(set(self._running))
                )

    @property
    def _roles(self) -> Roles:
        return EVERY if self.roles is None else self.roles

    async def _help(self, others: RoleWorkers, roles: Iterable[Role]) -> None:
        for role in await others.want(roles):
            self.tell(f"making the calls of role {role}")

    async def _look(self, own: str, limited: LimitedQueues, others: RoleWorkers) -> None:
        try:
            batches = await self._open()
            batches |= await self._replayed(own, batches)
            if self.only is not None:
                wanted = batch_queue(self.only)
                batches = {queue: one for queue, one in batches.items() if queue == wanted}
        except RPCError as error:
            self.tell(f"the server does not answer ({error.message}); asking again")
            return
        except ArchiveError as error:
            self.tell(f"the archive does not answer ({error}); asking again")
            return
        await self._stop(self._running.keys() - batches.keys())
        for queue, (_, task) in self._running.items():
            if task.done():
                raise ServerError(f"the worker of {queue} stopped: {task.exception()}")
        mine = [batch for batch in batches.values() if self._takes(batch, own)]
        if Role.TURNS in self._roles:
            for batch in mine:
                self._start(batch)
        split = any(batch.split for batch in mine)
        # A worker that was given no roles takes part in all, but only where a batch is split by
        # them.
        await self._help(others, self._roles if split else self.roles or ())
        await self._look_at_jobs([batch.queue for batch in mine])
        queues = {queue for batch in mine for queue in batch.limited}.union(*self._of_jobs.values())
        await limited.want(
            queue for queue in queues if role_of(queue) in self._roles and is_of(queue, own)
        )

    async def _look_at_jobs(self, queues: Sequence[str]) -> None:
        """Look by which queues limited calls go of the open jobs of batches.

        One that was reset goes by those with which it began, while its batch, begun anew, may name
        others.
        """
        known = self._of_jobs
        self._of_jobs = {queue: known[queue] for queue in queues if queue in known}
        again = self._looks % OLDER_LOOKS == 0
        self._looks += 1
        for queue in queues:
            if again or queue not in known:
                # What was known holds while the server does not answer.
                with suppress(RPCError):
                    self._of_jobs[queue] = await queues_of(self.client, open_on(queue))

    def _takes(self, batch: OpenBatch, own: str) -> bool:
        """Whether this is a worker for the batch; if not, that is told."""
        if batch.archive != own:
            self._refuse(
                batch.queue, f"its archive is {batch.store}, this worker's is {self.store}"
            )
            return False
        if not batch.split and self._roles != EVERY:
            self._refuse(batch.queue, f"it was started without {VARIABLE}, which this worker has")
            return False
        return True

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
                    tuple(map(str, memo.get(QUEUES, ()))),
                    bool(memo.get(MEMO)),
                )
        return batches

    def _refuse(self, queue: str, reason: str) -> None:
        """Tell, once, why there is no work on a queue."""
        if queue not in self._refused and len(self._refused) < MOST_REFUSED:
            self._refused.add(queue)
            self.tell(f"not working on batch {queue.removeprefix(batch_queue(''))}: {reason}")

    async def _replayed(self, own: str, batches: Mapping[str, OpenBatch]) -> dict[str, OpenBatch]:
        """The batches that have ended, but for a job of this archive that was reset or forked.

        Raises:
            RPCError: if the server does not answer.
            ArchiveError: if the archive cannot be read.
        """
        replayed: dict[str, OpenBatch] = {}
        limited: dict[str, set[str]] = {}
        # Left out in the question: else each look would go through all open jobs of large batches.
        others = (
            f" AND TaskQueue NOT IN ({', '.join(map(repr, sorted(batches)))})" if batches else ""
        )
        async for execution in self.client.list_workflows(OPEN_JOBS + others):
            # One job is enough to say that a batch wants a worker, but each may have limited calls.
            queue, seen = execution.task_queue, execution.task_queue in replayed
            if seen and QUEUES not in execution.raw_info.memo.fields:
                continue
            try:
                memo = await execution.memo()
            except NotSigned as error:
                self._refuse(queue, error.message)
                continue
            limited.setdefault(queue, set()).update(map(str, memo.get(QUEUES, ())))
            if seen:
                continue
            archive = str(memo.get("archive", "")) or await asyncio.to_thread(
                self._archive_with, execution.id, own
            )
            if archive:
                split = bool(memo.get(MEMO))
                replayed[queue] = OpenBatch(queue, archive, str(memo.get("store", "")), split=split)
        return {
            queue: replace(batch, limited=tuple(sorted(limited[queue])))
            for queue, batch in replayed.items()
        }

    def _archive_with(self, workflow_id: str, own: str) -> str:
        """This archive's name if it has the job; a batch does not tell its jobs what its archive
        is.

        Raises:
            ArchiveError: if the archive cannot be read.
        """
        key = job_key(workflow_id)
        # By its key: one that is damaged is here, too.
        here = key is not None and JobArchive.of(self.store, key).definition_key() is not None
        return own if here else ""

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
            roles=self._roles,
        )
        self._running[batch.queue] = (worker, asyncio.create_task(worker.run()))
        # Whoever named the batch knows.
        if self.only is None:
            self.tell(f"working on batch {batch.name}")

    async def _stop(self, queues: set[str]) -> None:
        stopped = [self._running.pop(queue) for queue in queues]
        await asyncio.gather(*(worker.shutdown() for worker, _ in stopped))
        await asyncio.gather(*(task for _, task in stopped), return_exceptions=True)
