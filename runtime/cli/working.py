"""``holdfast worker``: one process that works on open batches or on the calls of queues, and a crew
of several.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from runtime.archive.stores import ObjectStore
from runtime.base.home import state_home
from runtime.base.roles import EVERY, Role, Roles, key_names, own_roles, told
from runtime.cli.interrupts import Interrupts
from runtime.cli.options import words_of
from runtime.cli.output import note
from runtime.cli.stores import archive_of
from runtime.cli.telemetry import VARIABLE
from runtime.server.connection import Connection, connect
from runtime.server.target import Target
from runtime.worker.crew import Crew, fitting_size, is_member
from runtime.worker.presence import attended
from runtime.worker.settings import check_settings


@dataclass(frozen=True)
class Workers:
    """What workers are asked for: the version of a deployment that they are, what they may take
    from this machine, the one batch that they work on, where metrics are served, the queues of
    tools that they work on in place of batches, and the parts of the work that they do.
    """

    deployment: str | None = None
    build: str | None = None
    allowed: tuple[Path, ...] = ()
    batch: str | None = None
    metrics: str | None = None
    queues: tuple[str, ...] = ()
    roles: Roles | None = None

    def environment(self, number: int) -> dict[str, str]:
        """Variables of the ``number``-th process: where it serves metrics that are its own."""
        if self.metrics is None:
            return {}
        host, _, port = self.metrics.rpartition(":")
        return {VARIABLE: f"{host}:{int(port) + number}"}

    def options(self) -> list[str]:
        """The options of ``holdfast worker`` that ask for the same."""
        settings = {"--deployment": self.deployment, "--build": self.build, "--batch": self.batch}
        settings["--roles"] = None if self.roles is None else told(self.roles)
        options = [*settings.items(), *(("--allow", str(path)) for path in self.allowed)]
        options += [("--queue", queue) for queue in self.queues]
        return [part for name, value in options if value is not None for part in (name, value)]


async def run_workers(
    target: Target, store_url: str | None, wish: Workers, processes: int | None
) -> int:
    """Work on the open batches until interrupted; returns the exit code.

    Raises:
        InputError: if a variable of the environment cannot be used.
    """
    check_settings()
    store = await asyncio.to_thread(archive_of, store_url)
    with Interrupts("give the same command again to go on with them") as interrupts:
        try:
            async with connect(target) as connection:
                interrupts.abandons_server(connection.embedded)
                embedded = connection.embedded is not None
                # Several processes need several ports: they must be asked for.
                alone = wish.metrics is not None
                size = processes or (1 if alone else fitting_size(shared=embedded))
                many = f", {size} processes" if size > 1 else ""
                what = f"calls of {', '.join(wish.queues)}" if wish.queues else "batches"
                if wish.roles is not None:
                    what = f"{', '.join(told(wish.roles).split(','))} of batches"
                # The process that started a member has told that, or has more to tell.
                if not is_member():
                    note(
                        f"waiting for {what} on {connection.shown}, archive {store}{many}; Ctrl-C"
                        " drains, a second one stops at once"
                    )
                if wish.roles is not None and Role.MODELS not in wish.roles:
                    _tell_of_keys()
                if size > 1:
                    crew = crew_of(target, store_url, wish)
                    interrupts.abandons(crew.kill)
                    async with attended(connection.client, state_home()):
                        return await crew.work(size)
                await _serve(connection, store, wish)
        except asyncio.CancelledError:
            if not interrupts.asked.is_set():
                raise
    return 0


def _tell_of_keys() -> None:
    """Tell of providers' keys that a worker has and does not need."""
    if names := key_names(os.environ):
        note(f"{', '.join(names)}: unset here what workers with --roles models alone need")


async def _serve(connection: Connection, store: ObjectStore, wish: Workers) -> None:
    """Work on the open batches, in this process."""
    from temporalio.common import WorkerDeploymentVersion

    from runtime.worker.queues import QueueWorkers
    from runtime.worker.serving import BatchWorkers
    from runtime.worker.worker import RELEASE

    if wish.queues:
        await QueueWorkers(connection.client, store, note, wish.queues, wish.allowed).serve()
        return

    version = (
        WorkerDeploymentVersion(wish.deployment, wish.build or RELEASE)
        if wish.deployment is not None
        else None
    )
    if version is not None:
        note(f"version {version.build_id} of deployment {version.deployment_name}")
    await BatchWorkers(
        connection.client,
        store,
        note,
        version,
        wish.allowed,
        only=wish.batch,
        roles=wish.roles,
    ).serve()


def crew_of(target: Target, store: str | None, wish: Workers) -> Crew:
    """Processes that do what is wished for.

    Raises:
        InputError: if ``HOLDFAST_ROLES`` has no roles in it.
    """
    # The tools of a queue are all that its workers call.
    roles = frozenset({Role.TOOLS}) if wish.queues else wish.roles or own_roles() or EVERY
    return Crew(_member(target, store, wish), note, wish.environment, roles)


def _member(target: Target, store: str | None, wish: Workers) -> list[str]:
    """The command of one process of a crew."""
    return ["worker", *words_of(target, store), "--processes", "1", *wish.options()]
