"""The embedded server: one local Temporal dev server for each state directory, shared by all who
run jobs there.

``server_in_use`` finds or starts it and counts as a user of it until it is left; the last user
stops it, unless ``holdfast up`` pinned it. Everything that looks at, starts or stops the process
happens under one lock file, so any number of processes may do so at once, and each of them may be
killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import AsyncFileLock, FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from runtime.base.disk_room import NO_SPACE, room_on
from runtime.base.errors import InputError, ServerError
from runtime.base.home import Home
from runtime.base.search_attributes import TYPES
from runtime.server.binary import find_binary
from runtime.server.leaving import begin_connecting
from runtime.server.process import (
    END_SECONDS,
    Launched,
    Ports,
    ServerInfo,
    begin_database,
    database_is_made,
    free_ports,
    is_alive,
    kill,
    last_ports,
    launch,
    log_since,
    log_tail,
    read_info,
    still_ends,
    terminate,
    wait_until,
)
from runtime.server.users import begin_use, live_users

if TYPE_CHECKING:
    from temporalio.service import ServiceClient

__all__ = [
    "NAMESPACE",
    "ServerInfo",
    "ServerState",
    "ServerStatus",
    "abandon_server",
    "ensure_server",
    "pin_server",
    "server_in_use",
    "server_status",
    "stop_server",
]

NAMESPACE = "holdfast"
"""The embedded server's namespace.

Not ``default``: that one begins with a retention of 24 hours, and runs that close in the first
seconds after it was changed still get the old one (the server reads a namespace into its cache).
"""

# For good, in effect: a job can be replayed only while its run's history is there.
RETENTION = timedelta(days=3650)
"""How long the embedded server keeps the history of a closed run."""

START_SECONDS = 30.0
"""How long a server may take until it serves; it takes some 0.3 s."""

SILENT_SECONDS = 15.0
"""How long a server that was found alive may take to answer before it is replaced."""

PORT_TAKEN = "address already in use"
"""What Go's listener says, in the server's log."""

START_TRIES = 3
"""How often to start it when another process took its ports first, or it is killed as it starts."""

ANSWER_SECONDS = 5.0
"""How long one call to it may take."""

ABANDON_SECONDS = 1.0
"""How long a process that is to end at once waits for others to let go of the server."""

WITH_UI = "ui"
"""What the file ``pinned`` says of a server that has its web UI."""

# Enough for a silent server to be waited for (15 s), ended (35 s) and started three times (30 s
# each); a download alone may outlast it.
LOCK_SECONDS = 150.0
"""How long to wait for another process that is starting or stopping the server."""

_log = logging.getLogger(__name__)


DAMAGED = ("file is not a database", "database disk image is malformed", "no such table")
"""What SQLite says of a file that is no database, or no whole one."""

FULL = ("database or disk is full", "no space left on device", "printf: i/o error")
"""What SQLite, the system and the shell that launches the server say of a disk without room."""


class ServerState(StrEnum):
    """What a state directory's server is doing."""

    SERVING = "serving"
    SILENT = "silent"
    """Its process lives and does not answer."""
    STOPPED = "stopped"


class ServerStatus(BaseModel):
    """A state directory's server, and who uses it.

    ``database_bytes`` includes SQLite's write-ahead log.
    """

    model_config = ConfigDict(frozen=True)

    state: ServerState
    server: ServerInfo | None
    version: str | None
    pinned: bool
    users: tuple[int, ...]
    home: Path
    database: Path
    database_bytes: int
    log: Path


@asynccontextmanager
async def server_in_use(home: Home) -> AsyncIterator[ServerInfo]:
    """The server of ``home``, started if need be, and started again on the same ports should it die
    meanwhile.

    On leaving, the server is stopped if nobody else uses it and it is not pinned.

    Raises:
        ServerError: if it cannot be started; the message ends with the last lines of its log.
    """
    async with _start_lock(home):
        use = begin_use(home)
        try:
            info = await _ensure(home)
        # An interrupt too: the use's lock would hold the server for as long as this process lives.
        except BaseException:
            use.end()
            raise
    keeper = asyncio.create_task(_keep(home, info))
    try:
        yield info
    finally:
        # First of all: it would start again the server that is stopped below.
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        async with _start_lock(home):
            use.end()
            if not _pin(home).exists() and not live_users(home):
                await terminate(home)


def abandon_server(home: Home) -> None:
    """End the server of ``home`` at once if no other process uses it and it is not pinned: this
    process is about to end, and nobody else would.

    It is left where another process starts or stops it, or uses it still.
    """
    with (
        suppress(Timeout, ServerError, OSError),
        FileLock(home.server / "start.lock", timeout=ABANDON_SECONDS, mode=0o600),
    ):
        end = time.monotonic() + ABANDON_SECONDS
        # Those that were killed a moment ago have their locks until they are gone.
        while (others := set(live_users(home)) - {os.getpid()}) and time.monotonic() < end:
            time.sleep(0.02)
        if not others and not _pin(home).exists():
            kill(home)


async def ensure_server(home: Home) -> ServerInfo:
    """The server of ``home``, started if need be. It stays when this process ends.

    Raises:
        ServerError: if it cannot be started; the message ends with the last lines of its log.
    """
    async with _start_lock(home):
        return await _ensure(home)


async def pin_server(home: Home, *, ui: bool = False) -> ServerInfo:
    """Like ``ensure_server``; and nobody's end stops the server until ``stop_server``.

    With ``ui`` it has Temporal's web UI, until then. A server without it, which nobody uses, is
    started again on its port.

    Raises:
        ServerError: as ``ensure_server``; also if processes use a server that has no web UI.
    """
    async with _start_lock(home):
        if ui:
            await _stop_headless(home)
        _pin(home).touch(mode=0o600)
        if ui:
            _pin(home).write_text(WITH_UI, "ascii")
        return await _ensure(home)


async def _stop_headless(home: Home) -> None:
    info = read_info(home) if is_alive(home) else None
    if info is None or info.ui_url is not None:
        return
    if users := live_users(home):
        raise ServerError(
            "the embedded Temporal server runs without its web UI, and is used by process"
            f" {', '.join(map(str, users))}: give the same command when they have ended"
        )
    await terminate(home)


async def stop_server(home: Home) -> bool:
    """Unpins the server of ``home`` and stops it; returns whether there was one.

    Raises:
        ServerError: if processes use it: it stops when the last of them ends.
    """
    async with _start_lock(home):
        _pin(home).unlink(missing_ok=True)
        users = live_users(home)
        if users:
            raise ServerError(
                f"the embedded Temporal server is used by process {', '.join(map(str, users))}:"
                " it stops when the last of them ends"
            )
        ran = is_alive(home)
        await terminate(home)
        return ran


async def server_status(home: Home) -> ServerStatus:
    """What the server of ``home`` is doing. Starts and stops nothing."""
    async with _start_lock(home):
        info = read_info(home) if is_alive(home) else None
        alive = is_alive(home)
        version = await _version(info) if info is not None else None
        files = [home.database, home.database.with_name(home.database.name + "-wal")]
        return ServerStatus(
            state=(
                ServerState.SERVING
                if version
                else ServerState.SILENT
                if alive
                else ServerState.STOPPED
            ),
            server=info,
            version=version,
            pinned=_pin(home).exists(),
            users=live_users(home),
            home=home.path,
            database=home.database,
            database_bytes=sum(file.stat().st_size for file in files if file.exists()),
            log=home.log,
        )


async def _keep(home: Home, first: ServerInfo) -> None:
    """Starts the server again whenever it has died: clients that are connected find it where it
    was.
    """
    trouble = ""
    while True:
        await asyncio.sleep(1)
        before, trouble = trouble, ""
        try:
            async with _start_lock(home):
                if is_alive(home):
                    trouble = _moved(home, first)
                else:
                    if not before:
                        _log.warning("the embedded Temporal server died and is started again")
                    await _ensure(home, used=True)
        # It is tried again: whoever waits for the server is told by it that it does not answer. So
        # is a host in trouble, as one without a descriptor left, and a file of settings that
        # somebody is about to change.
        except (ServerError, InputError, OSError) as error:
            trouble = str(error)
        if trouble != before and trouble:
            _log.error("%s", trouble)


def _moved(home: Home, first: ServerInfo) -> str:
    """What to say where the server that lives is at another port than the ``first``."""
    now = read_info(home)
    if now is None or now.port == first.port:
        return ""
    return (
        f"the embedded Temporal server is at port {now.port} now, and not at {first.port}: give the"
        " same command again"
    )


def _check_port(home: Home, last: Ports | None, chosen: Ports, *, used: bool) -> None:
    """See that the server comes back where those look for it who use it.

    Raises:
        ServerError: if that port is taken.
    """
    if last is None or chosen.frontend == last.frontend:
        return
    others = [pid for pid in live_users(home) if pid != os.getpid()]
    if used or others:
        raise ServerError(
            f"port {last.frontend}, where the embedded Temporal server is looked for by process"
            f" {', '.join(map(str, others or [os.getpid()]))}, is taken by another process: the"
            " server is started again as soon as it is free"
        )


async def _ensure(home: Home, *, used: bool = False) -> ServerInfo:
    """``used``: this process looks for the server where it was."""
    ports = last_ports(home)
    if is_alive(home):
        info = read_info(home)
        if info is not None and await _prepare(info, lambda: is_alive(home), SILENT_SECONDS):
            database_is_made(home)
            return info
        await terminate(home)
    await wait_until(lambda: not still_ends(home), END_SECONDS)
    binary = await find_binary(home)
    for _ in range(START_TRIES):
        chosen = free_ports(ports, ui=_wants_ui(home))
        _check_port(home, ports, chosen, used=used)
        begin_database(home)
        launched = launch(home, binary, chosen)
        if await _serves(launched):
            database_is_made(home)
            return launched.info
        killed = launched.process.poll() == -signal.SIGKILL
        if not killed and not _lost_its_port(home, launched):
            break
        # What its shell has forked may outlive it for a moment, and has its lock.
        if not await wait_until(lambda: not is_alive(home), END_SECONDS):
            break
    raise await _not_started(home, launched)


async def _serves(launched: Launched) -> bool:
    try:
        return await _prepare(launched.info, lambda: launched.process.poll() is None, START_SECONDS)
    except BaseException:
        # Interrupted: a server that nobody has waited for is nobody's.
        launched.process.kill()
        raise


async def _prepare(info: ServerInfo, alive: Callable[[], bool], seconds: float) -> bool:
    """Waits until the server serves and has the namespace; False once it is dead or ``seconds`` are
    over.
    """
    from temporalio.service import RPCError

    end = time.monotonic() + seconds
    while alive() and time.monotonic() < end:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await _make_namespace(await _service(info))
            # Asked once more: what answered may be another process, if this one died and lost its
            # port.
            return alive()
        # The SDK's core has no error of its own for a port where nobody listens yet.
        except (RuntimeError, RPCError, TimeoutError):
            await asyncio.sleep(0.05)
    return False


async def _service(info: ServerInfo) -> ServiceClient:
    from temporalio.service import ConnectConfig, ServiceClient

    begin_connecting()
    return await ServiceClient.connect(ConnectConfig(target_host=info.address))


async def _make_namespace(service: ServiceClient) -> None:
    """Returns once the namespace can be used.

    Not asked for before it is made: the server would remember the "no".
    """
    from google.protobuf.duration_pb2 import Duration
    from temporalio.api.workflowservice.v1 import (
        CountWorkflowExecutionsRequest,
        RegisterNamespaceRequest,
    )
    from temporalio.service import RPCError, RPCStatusCode

    api, retention = service.workflow_service, Duration(seconds=int(RETENTION.total_seconds()))
    try:
        await api.register_namespace(
            RegisterNamespaceRequest(
                namespace=NAMESPACE, workflow_execution_retention_period=retention
            )
        )
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise
    await _add_search_attributes(service)
    await api.count_workflow_executions(CountWorkflowExecutionsRequest(namespace=NAMESPACE))


async def _add_search_attributes(service: ServiceClient) -> None:
    """Before the namespace is used: the server reads its attributes into a cache then.

    One that cannot have them does without.

    Raises:
        RPCError: if the server does not know the namespace yet.
    """
    from temporalio.service import RPCError, RPCStatusCode

    from runtime.server.preparing import add_attributes

    try:
        await add_attributes(service.operator_service, NAMESPACE, list(map(str, TYPES)))
    except RPCError as error:
        # A server that was asked for the namespace before it was made remembers that for seconds.
        if error.status is RPCStatusCode.NOT_FOUND:
            raise
        _log.warning("jobs cannot be searched for by their attributes: %s", error.message)


async def _version(info: ServerInfo) -> str | None:
    """The version that the server gives; None if it does not answer."""
    from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
    from temporalio.service import RPCError

    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            service = await _service(info)
            return str(
                (
                    await service.workflow_service.get_system_info(GetSystemInfoRequest())
                ).server_version
            )
    except (RuntimeError, RPCError, TimeoutError):
        return None


def _lost_its_port(home: Home, launched: Launched) -> bool:
    """Whether it ended because another process took one of its ports between choosing it and
    listening on it.

    Only its log tells: the other may have been a connection that is closed by now.
    """
    return launched.process.poll() is not None and PORT_TAKEN in log_since(home, launched.log_start)


async def _not_started(home: Home, launched: Launched) -> ServerError:
    code = launched.process.poll()
    await terminate(home)
    what = (
        f"did not serve within {START_SECONDS:.0f} s"
        if code is None
        else f"ended with exit code {code}"
    )
    tail = log_tail(home, launched.log_start)
    logged = f"log is {home.log}" + (f":\n{tail}" if tail else "")
    said = log_since(home, launched.log_start)
    if any(words in said for words in DAMAGED):
        return ServerError(
            f"the embedded Temporal server cannot read its database {home.database}: it is damaged."
            f" Move it away together with {home.database.name}-wal and {home.database.name}-shm,"
            " then give 'holdfast run JOBS_FILE --from-archive': what ended stays as the archive"
            f" has it, and what was open goes on from there. The server's {logged}"
        )
    room = room_on(home.server)
    # Its log is on that disk, too, and may have had no room for a word.
    lack = None if room is None else room.lack()
    if lack is None and any(words in said.lower() for words in FULL):
        lack = NO_SPACE
    if lack is not None:
        return ServerError(
            f"the embedded Temporal server cannot write to {home.server}: the disk {lack.told}."
            f" {lack.remedy.capitalize()}, then give the same command again; nothing is lost. The"
            f" server's {logged}"
        )
    return ServerError(f"the embedded Temporal server {what}; its {logged}")


@asynccontextmanager
async def _start_lock(home: Home) -> AsyncIterator[None]:
    lock = AsyncFileLock(
        home.server / "start.lock",
        timeout=LOCK_SECONDS,
        mode=0o600,
        thread_local=False,
        run_in_executor=False,
    )
    try:
        await lock.acquire()
    except Timeout as error:
        raise ServerError(
            "another process has been starting or stopping the embedded server for"
            f" {LOCK_SECONDS:.0f} s ({home.server / 'start.lock'})"
        ) from error
    try:
        yield
    finally:
        await lock.release()


def _pin(home: Home) -> Path:
    return home.server / "pinned"


def _wants_ui(home: Home) -> bool:
    """Whether the server is to have its web UI: as long as it is pinned by somebody who said so."""
    try:
        return _pin(home).read_text("ascii") == WITH_UI
    except FileNotFoundError:
        return False
