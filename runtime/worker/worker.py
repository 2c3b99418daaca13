"""The worker: the workflows and activities of Holdfast on one Temporal task queue."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.plugin import SimplePlugin
from temporalio.worker import Interceptor, Worker, WorkerDeploymentConfig

from activities.build import code_digest, this_build
from activities.model import warm
from runtime.archive.catalog import archive_id
from runtime.archive.stores import ObjectStore
from runtime.base.collector import look_less_often
from runtime.base.encodings import DEFAULT_ENCODING
from runtime.base.home import state_home
from runtime.base.open_jobs import open_jobs
from runtime.base.roles import EVERY, Role, Roles, own_roles
from runtime.base.spec.limits import is_tools, role_of, role_queue
from runtime.base.tokens import encoding
from runtime.interpreter import pool
from runtime.interpreter.checker import GaveUp
from runtime.interpreter.typecheck import check
from runtime.worker.beside import Leaving, beside
from runtime.worker.limited import LimitedQueues
from runtime.worker.parts import Parts, make_parts
from runtime.worker.patience import Patience, PatientWorker
from runtime.worker.presence import present
from runtime.worker.role_workers import RoleWorkers, others_work
from runtime.worker.sticky import STICKY
from runtime.worker.taskwise import TaskwiseRunner
from runtime.worker.tidying import tidied
from workflows.batch import BatchWorkflow
from workflows.doors import Door
from workflows.job import JobWorkflow
from workflows.messages import TASK_QUEUE
from workflows.strangers import UnknownWorkflow, VersionedUnknown
from workflows.versioned import VersionedBatch, VersionedJob

GRACE = timedelta(seconds=20)
"""How long activities in flight may go on after a worker was asked to stop."""

HEARTBEAT_INTERVAL = timedelta(seconds=2)
"""How often heartbeats are sent at most.

The SDK's own choice is 0.8 of the timeout; a cancellation is told by the answer to one.
"""

MOST_WORKFLOW_TASKS = pool.PROCESSES
"""Workflow tasks that a worker has at once: each may hold an interpreter process."""

BUILD = version("holdfast")
"""Stands in most events of a history.

The SDK's own choice is a digest of all loaded code: longer, and no better known.
"""

RELEASE = f"{BUILD}-{code_digest()}-{this_build().interpreter.replace(' ', '-')}"
"""The build id of a versioned worker: Holdfast's version, the digest of workflow code and the
interpreter's version, since each may change what a replay gives.
"""

ACTIVATION_SECONDS = 50
"""How long the SDK waits for an activation of a workflow before it takes the workflow for
deadlocked; less than a task's limit.

The SDK's own choice is 2 s of wall time, which says how busy the machine is; a worker whose
detector fired has lost a slot until the thread comes back, and the task has failed for nothing.
What the detector is for is bounded here in other
ways: a stretch by processor time and by calls, an interpreter that does not answer by
``pool.WALL_SECONDS``. There is no option for it but ``debug_mode``, which runs workflows on the
event loop, so it is set where the SDK keeps it.
"""

NO_STORAGE = 1
"""Payloads at a time that go to a storage beside the server, in one activation: there is none.

With more, the SDK makes a task for each payload and waits for all of them, storage or not.
"""

_WORKFLOWS = (JobWorkflow, BatchWorkflow, UnknownWorkflow)
_VERSIONED = (VersionedJob, VersionedBatch, VersionedUnknown)
_DETECTOR = "_deadlock_timeout_seconds"

CALLS = 256
"""Activities at a time: model calls wait on the network, so they are many.

Threads are made as they are needed.
"""


def make_worker(
    client: Client,
    store: ObjectStore,
    *,
    task_queue: str = TASK_QUEUE,
    grace: timedelta = GRACE,
    cached_jobs: int | None = None,
    workflow_tasks: int = MOST_WORKFLOW_TASKS,
    deployment: WorkerDeploymentVersion | None = None,
    allowed: tuple[Path, ...] = (),
    identity: str | None = None,
    workspaces: Path | None = None,
    roles: Roles = EVERY,
) -> Worker:
    """A worker that archives to ``store``. Without all ``roles`` it does turns alone.

    ``cached_jobs`` workflows stay in memory, by default ``open_jobs()``; the others are replayed.
    At most ``workflow_tasks`` of them run at a time: as many as there are interpreter processes, so
    none waits for one. Workflow code runs unsandboxed: its imports are kept pure by the import
    contract, and every history that a test makes is replayed. With a ``deployment``, jobs stay on
    the version that they began on until they continue as new. Scripts, tools and workspaces are
    taken from below the ``allowed`` directories; without any, from wherever an order names.
    """
    parts = make_parts(client, store, allowed, workspaces, roles)
    turns = [*parts.of_roles[Role.TURNS], others_work]
    versioned = deployment is not None
    worker = PatientWorker(
        client,
        task_queue=task_queue,
        identity=identity,
        workflows=_VERSIONED if versioned else _WORKFLOWS,
        activities=parts.activities if roles == EVERY else turns,
        unsandboxed_workflow_runner=TaskwiseRunner(),
        workflow_task_executor=_threads(workflow_tasks, "workflow"),
        activity_executor=_threads(CALLS, "activity"),
        max_concurrent_workflow_tasks=workflow_tasks,
        max_concurrent_activities=CALLS,
        max_concurrent_local_activities=CALLS,
        max_cached_workflows=open_jobs() if cached_jobs is None else cached_jobs,
        graceful_shutdown_timeout=grace,
        interceptors=[*parts.of_activities, Door()],
        plugins=[SimplePlugin("holdfast.tools", run_context=parts.tools.open), Patience(client)],
        max_heartbeat_throttle_interval=HEARTBEAT_INTERVAL,
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_workflow_task_external_storage_concurrency=NO_STORAGE,
        build_id=BUILD if deployment is None else None,
        deployment_config=_versioned(deployment) if deployment is not None else None,
    )
    allow_long_activations(worker)
    return worker


def make_limited_worker(
    client: Client,
    store: ObjectStore,
    queue: str,
    concurrent: int | None,
    metered: Interceptor,
    *,
    allowed: tuple[Path, ...] = (),
    identity: str | None = None,
    roles: Roles = EVERY,
) -> Worker:
    """A worker on the queue of an account or a tool that has a limit, for ``concurrent`` calls at a
    time.
    """
    parts = make_parts(client, store, allowed, roles=roles)
    return _activity_worker(
        client,
        queue,
        parts,
        parts.limited_tools if is_tools(queue) else parts.of_roles[Role.MODELS],
        threads="limited",
        calls=min(concurrent or CALLS, CALLS),
        # The first of them hears what all others made of a call.
        outermost=[metered],
        identity=identity,
    )


def make_queue_worker(
    client: Client,
    store: ObjectStore,
    queue: str,
    *,
    role: Role | None = None,
    allowed: tuple[Path, ...] = (),
    identity: str | None = None,
) -> Worker:
    """A worker on the task queue of a role, or of tools that certain workers alone may call."""
    parts = make_parts(client, store, allowed, roles=_only(role))
    return _activity_worker(
        client,
        queue,
        parts,
        parts.by_name if role is None else parts.of_roles[role],
        threads="queue",
        identity=identity,
    )


def _activity_worker(
    client: Client,
    queue: str,
    parts: Parts,
    activities: list[Callable[..., Any]],
    *,
    threads: str,
    calls: int = CALLS,
    outermost: Sequence[Interceptor] = (),
    identity: str | None,
) -> Worker:
    """A worker that does some of the activities of ``parts`` and nothing else, in ``threads`` of
    that name.
    """
    return PatientWorker(
        client,
        task_queue=queue,
        identity=identity,
        activities=activities,
        activity_executor=_threads(calls, threads),
        max_concurrent_activities=calls,
        graceful_shutdown_timeout=GRACE,
        interceptors=[*outermost, *parts.of_activities],
        plugins=[SimplePlugin("holdfast.tools", run_context=parts.tools.open), Patience(client)],
        max_heartbeat_throttle_interval=HEARTBEAT_INTERVAL,
        build_id=BUILD,
    )


def _threads(most: int, work: str) -> ThreadPoolExecutor:
    """At most so many threads, which say by their names what they work on."""
    return ThreadPoolExecutor(most, thread_name_prefix=f"holdfast-{work}")


def _only(role: Role | None) -> Roles:
    return EVERY if role is None else frozenset({role})


def role_workers(
    client: Client,
    store: ObjectStore,
    archive: str,
    *,
    allowed: tuple[Path, ...] = (),
    identity: str | None = None,
) -> RoleWorkers:
    """What works on the queues of roles, for the jobs of ``archive``, which is ``store``'s name."""

    def make(role: Role) -> Worker:
        queue = role_queue(role, archive)
        return make_queue_worker(
            client, store, queue, role=role, allowed=allowed, identity=identity
        )

    return RoleWorkers(make)


def limited_queues(
    client: Client,
    store: ObjectStore,
    *,
    allowed: tuple[Path, ...] = (),
    identity: str | None = None,
    roles: Roles = EVERY,
) -> LimitedQueues:
    """What works on the queues of accounts and tools that have a limit."""

    make = partial(
        make_limited_worker,
        client,
        store,
        allowed=allowed,
        identity=identity,
        roles=roles,
    )
    return LimitedQueues(client, make)


def allow_long_activations(worker: Worker) -> None:
    """Set the limit of the SDK's deadlock detector, where this release of the SDK keeps it.

    Raises:
        RuntimeError: if it keeps it elsewhere: a busy machine would fail tasks and lose slots
            without a word.
    """
    inner = getattr(worker, "_workflow_worker", None)
    if not hasattr(inner, _DETECTOR):
        raise RuntimeError(
            f"temporalio {version('temporalio')} keeps the limit of its deadlock detector elsewhere"
            f" than in _workflow_worker.{_DETECTOR}: install the release that requirements.lock"
            " names"
        )
    setattr(inner, _DETECTOR, ACTIVATION_SECONDS)


def _versioned(version: WorkerDeploymentVersion) -> WorkerDeploymentConfig:
    """How a worker says that it is a version of a deployment, to which Temporal pins the jobs that
    begin on it.
    """
    return WorkerDeploymentConfig(version=version, use_worker_versioning=True)


def load(roles: Roles = EVERY) -> None:
    """Load what is slow to load: litellm takes seconds and holds the interpreter lock, which would
    stall heartbeats; the token encoding would be time of some job's workflow task.

    No thread, process or connection is begun.
    """
    if Role.MODELS in roles:
        warm()
    encoding(DEFAULT_ENCODING).count("")


def warm_up(roles: Roles = EVERY) -> None:
    """Do what is slow the first time before any work comes: ``load``, and the first type check."""
    # These first: they are processes of their own, and ``run`` is loading in another thread.
    if Role.TURNS in roles:
        _warm_interpreters()
    load(roles)
    _leave_alone()


def _warm_interpreters() -> None:
    # An interpreter that cannot start on a busy machine, or is killed as it starts, is no reason
    # not to work: it is tried again when it is needed.
    with suppress(GaveUp, pool.NoVerdict):
        check("", "", {}, frozenset())
    with suppress(pool.NoVerdict), pool.session():
        pass


@cache
def _leave_alone() -> None:
    """Have the garbage collector no longer look through what is loaded (litellm alone is half a
    million objects, which stay), and look through the rest less often.

    A call of a long prompt makes some thousands of objects, which go with it. By Python's default
    each turn would begin several collections, in which the state of all jobs is walked through.
    """
    # What has become garbage since modules were loaded would be frozen with the rest, and stay.
    gc.collect()
    gc.freeze()
    look_less_often()


@asynccontextmanager
async def running_worker(
    client: Client,
    store: ObjectStore,
    *,
    task_queue: str = TASK_QUEUE,
    limited: Sequence[str] = (),
) -> AsyncIterator[None]:
    """A worker that runs until the end of the block, and then drains; with others on the queues
    that are ``limited``, on those of limited calls of jobs that are open already, and on those of
    the roles of this process, if it has some.

    Raises:
        InputError: if ``HOLDFAST_SIGNING_KEY`` is set to what is no key, or ``HOLDFAST_ROLES`` to
            what are no roles.
        ServerError: if one of the other workers stopped within the block.
    """
    home, own = state_home(), own_roles()
    roles = EVERY if own is None else own
    # The lock that tells of a living worker is held before the first call is taken under its name.
    async with tidied(home), present(client, home) as identity, AsyncExitStack() as working:
        await asyncio.to_thread(warm_up, roles)
        archive = await asyncio.to_thread(archive_id, store)
        queues = limited_queues(client, store, identity=identity, roles=roles)
        others = role_workers(client, store, archive, identity=identity)
        leaving = Leaving()
        working.push_async_callback(leaving.left)
        if Role.TURNS in roles:
            worker = make_worker(
                client, store, task_queue=task_queue, identity=identity, roles=roles
            )
            await working.enter_async_context(worker)
        working.callback(leaving.leave, queues.close, others.close)
        helped = frozenset[Role]() if own is None else own
        await others.want(helped)
        # At once: ``follow`` asks the server for others first.
        await queues.want(queue for queue in limited if role_of(queue) in roles)
        following = queues.follow(limited, task_queue, archive, roles)
        await working.enter_async_context(beside(following, "limited"))
        await working.enter_async_context(beside(others.follow(helped), "roles"))
        yield
