"""The embedded server as an operating-system process: how it is started, recognised, found again
and ended.

The process is its own session, so neither a Ctrl-C nor the end of the process that started it
reaches it. Two things make it findable whatever is killed, and whenever:

* It inherits a locked file, ``alive.lock``. The lock is held exactly as long as the server lives,
  so a process id that was given to another process, a zombie or a stale state file cannot pass for
  a server. Where somebody has removed the file, Linux tells which process has it open.
* It writes its own process id, into that file and into ``server.json``, before it becomes the
  server. There is no moment at which a server runs and nothing says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from runtime.base.errors import InputError, ServerError
from runtime.base.home import Home
from runtime.base.places import read_regular
from runtime.server.ports import HOST, port_is_free, unused_ports
from runtime.server.users import locked

END_SECONDS = 10.0
"""How long the server may take to be gone once it is killed."""

_MOST_STATE = 64 * 1024

LOG_LINES = 15
LOG_BYTES = 16 * 1024 * 1024
"""A log larger than this is moved to ``server.log.1`` at the next start."""

SETTINGS = {
    # Lifts one sequential job from 19 to 70 turns a second (docs/facts.md).
    "history.transferProcessorMaxPollRPS": "5000",
    "history.timerProcessorMaxPollRPS": "5000",
    "history.visibilityProcessorMaxPollRPS": "5000",
    # One partition, and the matcher that is fair: then a queue's rate holds for all workers
    # together, with bursts of a second's calls or three (docs/facts.md).
    "matching.useNewMatcher": "true",
    "matching.enableFairness": "true",
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
    # The server's own defaults of today, fixed: a job continues as new when the server suggests it
    # (docs/design.md section 9).
    "limit.historyCount.suggestContinueAsNew": "4096",
    "limit.historySize.suggestContinueAsNew": "4194304",
    # The server always has an HTTP API, which by default answers under any host name, so to any web
    # page that has this address looked up as its own. No page can have this name.
    "frontend.httpAllowedHosts": '["holdfast.invalid"]',
}
"""Dynamic configuration of the embedded server, as JSON values."""

PRAGMAS = ("journal_mode=wal", "synchronous=normal")
"""Survives the crash of any process; 66-75 to 122-134 turns a second with 20 concurrent jobs
(docs/facts.md).
"""

PASSED_ON = ("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "GOGC", "GOMAXPROCS", "GOMEMLIMIT")
"""The server's whole environment but for ``USER``, where set: no provider's key, and not the key
that payloads are signed with.
"""

# ``exec`` keeps the shell's process id, which stands in both files by then; ``mv`` puts the second
# there whole, so a reader sees this server or the one before it.
# $1: alive.lock; $2, $3: server.json without its pid, before and after it; $4: server.json; then
# the server's command.
_LAUNCH = (
    'echo $$ > "$1" && printf "%s%d%s" "$2" $$ "$3" > "$4.new" && mv -f "$4.new" "$4" && shift 4 &&'
    ' exec "$@"'
)


class ServerInfo(BaseModel):
    """A server process of a state directory, as ``server.json`` describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    pid: int
    port: int
    ui_port: int | None
    binary: str
    started_at: datetime

    @property
    def address(self) -> str:
        """``host:port`` of the gRPC frontend."""
        return f"{HOST}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        """The address of Temporal's web UI; None if the server has none."""
        return None if self.ui_port is None else f"http://{HOST}:{self.ui_port}"


@dataclass(frozen=True)
class Ports:
    """Where a server listens; ``ui`` is None for one without the web UI."""

    frontend: int
    ui: int | None


@dataclass(frozen=True)
class Launched:
    """A server that this process just started: its child process, and where its part of the log
    begins.
    """

    process: subprocess.Popen[bytes]
    info: ServerInfo
    log_start: int


_children: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that are children of this process and not reaped yet."""


def is_alive(home: Home) -> bool:
    """Whether a server process of this state directory lives; ask only while ``start.lock`` is
    held.
    """
    alive = locked(_alive_lock(home)) or _holder_of_removed(home) is not None
    if not alive:
        _reap()
    return alive


def read_info(home: Home) -> ServerInfo | None:
    """What ``server.json`` says; None if it is missing, broken, no file, or about another process
    than the lock's holder.
    """
    try:
        info = ServerInfo.model_validate_json(read_regular(_state_file(home), _MOST_STATE))
    except ValidationError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL, errno.EFBIG):
            return None
        raise
    return info if info.pid == _holder(home) else None


def last_ports(home: Home) -> Ports | None:
    """The ports of the last server: a client that was connected finds the next one there."""
    info = read_info(home)
    return Ports(info.port, info.ui_port) if info is not None else None


def still_ends(home: Home) -> bool:
    """Whether the last server, which is dead, has its port still: of a process that is killed the
    system closes the files one by one, and its lock before.
    """
    info = read_info(home)
    if info is None or port_is_free(info.port):
        return False
    _reap()
    # Not of the process, which is told as ended with its first thread: the last one closes the
    # files. Where there is none, another process has the port.
    try:
        threads = list(Path(f"/proc/{info.pid}/task").iterdir())
    except OSError:
        return False
    return any(map(_runs, threads))


def _runs(thread: Path) -> bool:
    """Whether a thread, by its directory in ``/proc``, has not ended yet."""
    try:
        status = (thread / "stat").read_text("ascii", "replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def free_ports(preferred: Ports | None, *, ui: bool) -> Ports:
    """A free port for the frontend and, with ``ui``, one for the web UI: the preferred ones if all
    are free.
    """
    frontend, page = unused_ports(2)
    if preferred is not None:
        wanted = Ports(preferred.frontend, (preferred.ui or page) if ui else None)
        if all(port is None or port_is_free(port) for port in (wanted.frontend, wanted.ui)):
            return wanted
    return Ports(frontend, page if ui else None)


def launch(home: Home, binary: Path, ports: Ports) -> Launched:
    """Starts a server process; ``start.lock`` is held and no server lives.

    Raises:
        ServerError: if the process cannot be started.
    """
    import fcntl

    info = ServerInfo(
        pid=0,
        port=ports.frontend,
        ui_port=ports.ui,
        binary=str(binary),
        started_at=datetime.now(UTC),
    )
    # Only while no server lives: one that runs would write on into the file that was moved away.
    _rotate(home.log)
    with contextlib.ExitStack() as stack:
        lock = os.open(_alive_lock(home), os.O_RDWR | os.O_CREAT, 0o600)
        stack.callback(os.close, lock)
        # The lock belongs to the open file, which the server inherits: it holds on when this
        # process closes its own descriptor below.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Else the id of the server before would pass for this one's until the shell has written its
        # own.
        os.ftruncate(lock, 0)
        log = stack.enter_context(open(home.log, "ab", opener=_private))
        log_start = log.tell()
        try:
            process = subprocess.Popen(
                [*_launcher(home, info), *_command(home, binary, ports)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home.server,
                env=_environment(home),
                # The database holds what jobs say: whatever the server makes is this user's alone.
                umask=0o077,
                pass_fds=(lock,),
                start_new_session=True,
            )
        except OSError as error:
            raise ServerError(f"the embedded Temporal server cannot be started: {error}") from error
    _children[process.pid] = process
    return Launched(process, info.model_copy(update={"pid": process.pid}), log_start)


def begin_database(home: Home) -> None:
    """Have the next server make its database, where there is none, or where the one that was to
    make it was killed meanwhile: no server begins with a part of one, in which nothing is yet.

    ``start.lock`` is held and no server lives.
    """
    making = _making(home)
    if making.exists():
        for suffix in ("", "-wal", "-shm"):
            part = home.database.with_name(home.database.name + suffix)
            # Kept, the last one: somebody may have put a database there by hand since.
            with contextlib.suppress(FileNotFoundError):
                part.replace(part.with_name(f"unmade-{part.name}"))
    elif not home.database.exists():
        making.touch(mode=0o600)


def database_is_made(home: Home) -> None:
    """Note that a server has served with its database; ``start.lock`` is held."""
    _making(home).unlink(missing_ok=True)


def _environment(home: Home) -> dict[str, str]:
    """The server's environment.

    Of a user that the system has no entry for, as in a container that is given a mere number, the
    server takes ``USER`` and ``HOME``, and does not start without.
    """
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {"USER": str(os.getuid()), "HOME": str(home.server), **passed}


def _launcher(home: Home, info: ServerInfo) -> list[str]:
    """The shell that says who it is, and becomes the server."""
    before, after = '{"pid":', "," + info.model_dump_json(exclude={"pid"})[1:]
    names = [str(_alive_lock(home)), before, after, str(_state_file(home))]
    return ["/bin/sh", "-c", _LAUNCH, "holdfast-server", *names]


async def terminate(home: Home) -> None:
    """Ends the server process of this state directory; returns when it is gone, and what it has
    answered is on the disk.

    By a kill: whatever it answers it has written before, and to end by itself it waits for more
    than a second, whether anybody is connected or not. ``start.lock`` is held.

    Raises:
        ServerError: if a server lives and nothing says which process it is, or it cannot be ended.
    """
    # A process that is just being started has the lock already and writes its id within moments.
    await wait_until(lambda: not is_alive(home) or _holder(home) is not None, END_SECONDS)
    pid = kill(home)
    if not await wait_until(lambda: not is_alive(home), END_SECONDS):
        raise ServerError(f"the embedded Temporal server (process {pid}) does not end")
    # Its files are closed, and so its lock is free, moments before its end can be told.
    await wait_until(partial(_is_no_child, pid), END_SECONDS)
    await asyncio.to_thread(_take_in_log, home.database)


def kill(home: Home) -> int | None:
    """Kill the server process of this state directory, if one lives; returns the process id of the
    last one. ``start.lock`` is held.

    Raises:
        ServerError: if a server lives and nothing says which process it is.
    """
    pid = _holder(home)
    if is_alive(home):
        if pid is None:
            raise ServerError(
                f"a process holds {_alive_lock(home)} and does not say which it is; end it by hand"
            )
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pid


def _take_in_log(database: Path) -> None:
    """Have SQLite write to a database what still stands in its log beside it, and sync it."""
    # Where it is no database, or the disk is full, the next start says so.
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as opened,
    ):
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Waits until ``condition()`` holds, for at most ``seconds``; returns whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        # The end of a process that is nobody's child here cannot be waited for, only looked at.
        await asyncio.sleep(0.02)
    return True


def log_tail(home: Home, start: int) -> str:
    """The last lines of the server's log after byte ``start``, indented."""
    return "\n".join("  " + line for line in log_since(home, start).splitlines()[-LOG_LINES:])


def log_since(home: Home, start: int) -> str:
    """The server's log after byte ``start``, its last 16 KiB at most."""
    try:
        with home.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - 16_384))
            return log.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _command(home: Home, binary: Path, ports: Ports) -> list[str]:
    # By its name alone: it begins in the file's directory, and takes what it is given for a part of
    # a URI as it stands, in which a path's "?", "#" and "%" mean something else.
    command = [str(binary), "server", "start-dev", "--db-filename", home.database.name]
    command += ["--ip", HOST, "--port", str(ports.frontend)]
    # The web UI answers under any host name, to pages of other sites as well: it is there on demand
    # only.
    command += (
        ["--headless"]
        if ports.ui is None
        else ["--ui-port", str(ports.ui), "--ui-disable-news-fetch"]
    )
    command += [
        "--log-level",
        "warn",
        "--color",
        "never",
        # The user's own profiles are about servers elsewhere.
        "--disable-config-file",
        "--disable-config-env",
    ]
    return [*command, *configuration(_own_settings(home))]


def configuration(own: Mapping[str, str] | None = None) -> Iterator[str]:
    """The options that give a server ``PRAGMAS`` and ``SETTINGS``, unless ``own`` sets one of these
    otherwise.
    """
    for name, value in {**SETTINGS, **(own or {})}.items():
        yield from ("--dynamic-config-value", f"{name}={value}")
    for pragma in PRAGMAS:
        yield from ("--sqlite-pragma", pragma)


def _own_settings(home: Home) -> dict[str, str]:
    try:
        settings = json.loads(read_regular(home.settings, _MOST_STATE))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{home.settings} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{home.settings} is not JSON: {error}") from error
    if not isinstance(settings, dict):
        raise InputError(
            f"{home.settings} must be an object of names and values of Temporal's dynamic"
            " configuration"
        )
    return {name: json.dumps(value) for name, value in settings.items()}


def _holder(home: Home) -> int | None:
    try:
        return int(read_regular(_alive_lock(home), _MOST_STATE))
    except FileNotFoundError:
        return _holder_of_removed(home)
    except OSError as error:
        raise ServerError(f"{error.filename} cannot be read: {error.strerror}") from error
    except ValueError:
        return None


def _holder_of_removed(home: Home) -> int | None:
    """The server whose lock's file somebody has removed: a second one on its database would undo
    what it has answered.
    """
    lock = _alive_lock(home)
    if lock.exists():
        return None
    removed = f"{lock.parent.resolve() / lock.name} (deleted)"
    processes = Path("/proc").glob("[0-9]*")
    return next((int(process.name) for process in processes if removed in _open_in(process)), None)


def _open_in(process: Path) -> Iterator[str]:
    """What a process has open. Nothing of another user's is shown."""
    with contextlib.suppress(OSError):
        for file in (process / "fd").iterdir():
            # By itself: a server closes files all the time, and the lock may be the next one.
            with contextlib.suppress(OSError):
                yield os.readlink(file)  # noqa: PTH115


def _is_no_child(pid: int | None) -> bool:
    """Whether a server is no child of this process, or one whose end it has been told of."""
    _reap()
    return pid not in _children


def _reap() -> None:
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            del _children[pid]


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _alive_lock(home: Home) -> Path:
    return home.server / "alive.lock"


def _making(home: Home) -> Path:
    return home.server / "making"


def _state_file(home: Home) -> Path:
    return home.server / "server.json"
