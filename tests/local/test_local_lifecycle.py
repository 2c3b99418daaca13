"""One server for each state directory: started once, shared, stopped by the last who leaves."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runtime.base.errors import InputError, ServerError
from runtime.base.home import Home
from runtime.sandbox import bubblewrap
from runtime.server.embedded import (
    RETENTION,
    ServerState,
    abandon_server,
    ensure_server,
    pin_server,
    server_in_use,
    server_status,
    stop_server,
)
from runtime.server.process import is_alive, wait_until
from tests.local.helpers import client_of, is_running, python, start_job

pytestmark = pytest.mark.server

USE_UNTIL_KILLED = """
import asyncio
from runtime.base.home import state_home
from runtime.server.embedded import server_in_use

async def main():
    async with server_in_use(state_home()) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_started_found_and_stopped(home: Home) -> None:
    """A first call starts the server, a second finds it; stopping ends the process and leaves
    nothing.
    """
    assert (await server_status(home)).state is ServerState.STOPPED
    first = await ensure_server(home)
    assert await ensure_server(home) == first
    status = await server_status(home)
    assert (status.state, status.server, status.users) == (ServerState.SERVING, first, ())
    assert status.version is not None
    assert await stop_server(home) is True
    assert await stop_server(home) is False
    with pytest.raises(ProcessLookupError):
        os.kill(first.pid, 0)


async def test_processes_that_start_at_once_share_one_server(home: Home) -> None:
    """Three processes that want a server at the same moment get the same one."""
    code = (
        "from runtime.cli.main import entry; import sys; sys.argv[1:] = ['up', '--json']; entry()"
    )
    processes = [python(code, home) for _ in range(3)]
    outputs = await asyncio.gather(
        *(asyncio.to_thread(process.communicate) for process in processes)
    )
    assert len({json.loads(out)["pid"] for out, _ in outputs}) == 1


async def test_last_user_stops_the_server(home: Home) -> None:
    """The server outlives the user that started it while another uses it, and ends with the
    last.
    """
    async with server_in_use(home) as first:
        second = server_in_use(home)
        assert await second.__aenter__() == first
    assert (await server_status(home)).state is ServerState.SERVING
    await second.__aexit__(None, None, None)
    assert (await server_status(home)).state is ServerState.STOPPED


async def test_killed_user_leaves_the_server_and_counts_no_more(home: Home) -> None:
    """After kill -9 of its only user the server lives on; the next user finds it, and its end stops
    it.
    """
    user = python(USE_UNTIL_KILLED, home)
    assert user.stdout is not None
    pid = int(await asyncio.to_thread(user.stdout.readline))
    assert (await server_status(home)).users == (user.pid,)
    with pytest.raises(ServerError, match=f"used by process {user.pid}"):
        await stop_server(home)
    user.send_signal(signal.SIGKILL)
    await asyncio.to_thread(user.communicate)
    status = await server_status(home)
    assert (status.state, status.users) == (ServerState.SERVING, ())
    async with server_in_use(home) as server:
        assert server.pid == pid
    assert (await server_status(home)).state is ServerState.STOPPED


async def test_one_that_ends_at_once_ends_a_server_that_nobody_else_uses(home: Home) -> None:
    """Neither one that others use, nor one that is pinned."""
    await ensure_server(home)
    user = python(USE_UNTIL_KILLED, home)
    assert user.stdout is not None
    await asyncio.to_thread(user.stdout.readline)
    abandon_server(home)
    assert (await server_status(home)).state is ServerState.SERVING
    user.send_signal(signal.SIGKILL)
    await asyncio.to_thread(user.communicate)
    await pin_server(home)
    abandon_server(home)
    assert (await server_status(home)).state is ServerState.SERVING
    (home.server / "pinned").unlink()
    abandon_server(home)
    assert await wait_until(lambda: not is_alive(home), 60)


async def test_pinned_server_stays(home: Home) -> None:
    """A pinned server stays when its last user leaves."""
    pinned = await pin_server(home)
    async with server_in_use(home) as server:
        assert server == pinned
    status = await server_status(home)
    assert (status.state, status.pinned) == (ServerState.SERVING, True)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who has it open")
async def test_a_server_whose_lock_was_removed_is_found_and_stopped(home: Home) -> None:
    """A second one on its database would undo what the first has answered."""
    first = await pin_server(home)
    (home.server / "alive.lock").unlink()
    assert await ensure_server(home) == first
    assert (await server_status(home)).server == first
    assert await stop_server(home) is True
    with pytest.raises(ProcessLookupError):
        os.kill(first.pid, 0)
    assert (await server_status(home)).state is ServerState.STOPPED


CHURN = """
import os, sys

held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.dup2(held, 100)
os.close(held)
os.unlink(sys.argv[1])
print(flush=True)
while True:
    for descriptor in [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]:
        os.close(descriptor)
"""


def test_a_removed_lock_is_found_among_files_that_open_and_close(home: Home) -> None:
    """As those of a server that serves."""
    lock = home.server / "alive.lock"
    with subprocess.Popen([sys.executable, "-c", CHURN, lock], stdout=subprocess.PIPE) as churn:
        try:
            assert churn.stdout is not None
            churn.stdout.readline()
            assert all(is_alive(home) for _ in range(100))
        finally:
            churn.kill()
    assert not is_alive(home)


async def test_first_closed_run_is_kept_for_years(home: Home) -> None:
    """A run that closes right after the first start of all is due for deletion in ten years, not in
    a day.
    """
    server = await ensure_server(home)
    client = await client_of(server)
    await start_job(client, "closed")
    await client.get_workflow_handle("closed").terminate()
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    def deletions() -> list[datetime]:
        # The server's own table of timers; nothing in its interface tells when a run will be
        # deleted.
        with closing(sqlite3.connect(home.database)) as database:
            rows = database.execute("select visibility_timestamp from timer_tasks").fetchall()
        times = [datetime.fromisoformat(row[0]) for row in rows]
        return [
            time
            for time in times
            if abs(time - tomorrow) < timedelta(hours=1) or time > tomorrow + RETENTION / 2
        ]

    assert await wait_until(lambda: bool(deletions()), 100)
    assert all(abs(time - tomorrow - RETENTION) < timedelta(days=2) for time in deletions())


async def test_state_survives_an_orderly_stop(home: Home) -> None:
    """What one server kept, the next one of the same directory has, at the same address."""
    async with server_in_use(home) as first:
        await start_job(await client_of(first), "kept")
    second = await ensure_server(home)
    assert second.address == first.address
    assert await is_running(await client_of(second), "kept")


async def test_a_server_that_was_stopped_leaves_one_file_with_all_in_it(home: Home) -> None:
    """Nothing is left in a log beside its database: whoever takes that along has all."""
    async with server_in_use(home) as server:
        client = await client_of(server)
        # So few that the server itself has not moved them out of its log yet.
        await start_job(client, "kept")
        log = home.database.with_name(home.database.name + "-wal")
        assert log.stat().st_size > 0
    assert not log.exists()
    with closing(sqlite3.connect(home.database)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert await is_running(await client_of(await ensure_server(home)), "kept")


@pytest.mark.parametrize("name", ["c#", "what?", "100%", "a%41", "two words"])
async def test_the_database_is_in_its_directory_whatever_that_is_called(
    name: str, home: Home
) -> None:
    """It is nowhere else, under a part of that name: others would share it, and could read it."""
    place = home.path / "places" / name
    (place / "server").mkdir(parents=True, mode=0o700)
    odd = Home(place)
    try:
        await start_job(await client_of(await ensure_server(odd)), "kept")
    finally:
        await stop_server(odd)
    assert [path.name for path in place.parent.iterdir()] == [name]
    assert odd.database.stat().st_size > 0
    assert not odd.database.with_name(odd.database.name + "-wal").exists()


async def test_settings_of_ones_own(home: Home) -> None:
    """What settings.json has goes before Holdfast's own setting of that name; what is no such file
    starts nothing.
    """
    name = "limit.historyCount.suggestContinueAsNew"
    for text in ("[1]", "{"):
        home.settings.write_text(text)
        with pytest.raises(InputError, match=r"settings\.json"):
            await ensure_server(home)
    home.settings.unlink()
    os.mkfifo(home.settings)
    with pytest.raises(InputError, match=r"settings\.json cannot be read: is no regular file"):
        await ensure_server(home)
    home.settings.unlink()
    assert (await server_status(home)).state is ServerState.STOPPED
    home.settings.write_text(json.dumps({name: 60}))
    server = await ensure_server(home)
    arguments = (await asyncio.to_thread(Path(f"/proc/{server.pid}/cmdline").read_text)).split("\0")
    assert [argument for argument in arguments if argument.startswith(name)] == [f"{name}=60"]
    await stop_server(home)


@pytest.mark.sandbox
def test_a_user_whom_the_system_does_not_know(home: Home) -> None:
    """A container may be given a mere number as its user: the server starts there too."""
    unknown = ("--dev-bind", "/", "/", "--ro-bind", "/dev/null", "/etc/passwd")
    said = subprocess.run(
        [str(bubblewrap.installed()), *unknown, sys.executable, "-m", "holdfast", "up"],
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(home.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert is_alive(home)
