"""The embedded server after crashes: its own, its starter's, and of what describes it."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from temporalio.service import RPCError

from runtime.base.errors import ServerError
from runtime.base.home import Home
from runtime.server import connection
from runtime.server import embedded as local
from runtime.server import process as local_process
from runtime.server.connection import Target
from runtime.server.embedded import ServerState, ensure_server, server_in_use, server_status
from tests.eventually import eventually
from tests.local.helpers import client_of, is_running, kill, kill_at_once, python, start_job

pytestmark = pytest.mark.server

LAUNCH_AND_DIE = """
import os, signal
from runtime.base.home import state_home
from runtime.server.process import free_ports, launch
from runtime.server.binary import installed_binary

launch(state_home(), installed_binary(), free_ports(None, ui=False))
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_kill_in_mid_write_loses_no_acknowledged_workflow(home: Home) -> None:
    """kill -9 of the server while it writes: every workflow whose start it had acknowledged runs
    afterwards.
    """
    first = await ensure_server(home)
    client = await client_of(first)
    acknowledged: list[str] = []

    async def write(lane: int) -> None:
        for n in range(1000):
            await start_job(client, f"{lane}-{n}")
            acknowledged.append(f"{lane}-{n}")

    lanes = [asyncio.create_task(write(lane)) for lane in range(4)]
    assert await local_process.wait_until(lambda: len(acknowledged) > 100, 100)
    await kill(home, first)
    for task in lanes:
        task.cancel()
    await asyncio.gather(*lanes, return_exceptions=True)
    second = await ensure_server(home)
    assert (second.pid != first.pid, second.address) == (True, first.address)
    client = await client_of(second)
    assert all(await asyncio.gather(*(is_running(client, name) for name in acknowledged)))


HOLD = """
import ctypes, signal, socket, sys, threading

held = socket.create_server(("127.0.0.1", int(sys.argv[1])))
{then}
"""

PAUSE = "print(flush=True); signal.pause()"

# The system tells the whole process as a zombie then.
END_THE_FIRST_THREAD = """
first = f"/proc/self/task/{threading.get_native_id()}/stat"

def pause():
    while open(first).read().rpartition(")")[2].split()[0] != "Z":
        pass
    print(flush=True)
    signal.pause()

threading.Thread(target=pause).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("then", [PAUSE, END_THE_FIRST_THREAD])
async def test_a_killed_server_that_has_its_port_still_is_waited_for(
    home: Home, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The next one is at the same port, also where nobody uses it."""
    first = await ensure_server(home)
    await kill(home, first)
    command = [sys.executable, "-c", HOLD.format(then=then), str(first.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:  # noqa: ASYNC220
        assert killed.stdout is not None
        killed.stdout.readline()
        # As if it were that server: of its files the lock alone is closed.
        said = json.loads((home.server / "server.json").read_text())
        (home.server / "server.json").write_text(json.dumps({**said, "pid": killed.pid}))
        (home.server / "alive.lock").write_text(str(killed.pid))
        asked: list[bool] = []

        def still_ends(home: Home) -> bool:
            asked.append(local_process.still_ends(home))
            if len(asked) == 3:
                killed.kill()
            return asked[-1]

        try:
            monkeypatch.setattr(local, "still_ends", still_ends)
            second = await ensure_server(home)
        finally:
            killed.kill()
    assert (asked[:3], asked[-1], second.address) == ([True] * 3, False, first.address)


async def test_a_server_that_is_killed_as_it_starts_is_started_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who kills it may do so at any moment."""
    launched: list[local_process.Launched] = []

    async def serves(one: local_process.Launched) -> bool:
        launched.append(one)
        if len(launched) == 1:
            one.process.kill()
            one.process.wait()
        return await wait(one)

    wait = local._serves
    monkeypatch.setattr(local, "_serves", serves)
    info = await ensure_server(home)
    assert [one.process.poll() for one in launched] == [-signal.SIGKILL, None]
    assert launched[1].info == info


def begun(home: Home, server: subprocess.Popen[bytes]) -> bool:
    """Whether the server has made something of its database, or has ended."""
    database = home.database
    return server.poll() is not None or (database.exists() and database.stat().st_size > 0)


def tables(home: Home) -> list[str]:
    """The tables of a database that no server has open, in the order in which they were made."""
    with closing(sqlite3.connect(home.database)) as database:
        made = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        )
        return [name for (name,) in made]


def cut_short(home: Home) -> None:
    """Take from the database what its server made last: it may have been killed too late."""
    for name in tables(home)[-1:]:
        with closing(sqlite3.connect(home.database)) as database:
            database.execute(f"DROP TABLE {name}")
            database.commit()


async def test_a_database_that_is_half_made_is_made_anew(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server was killed as soon as there was a file, and no other would begin with that."""
    launched: list[local_process.Launched] = []
    halves: list[int] = []

    async def serves(one: local_process.Launched) -> bool:
        launched.append(one)
        if len(launched) == 1:
            assert await local_process.wait_until(lambda: begun(home, one.process), 100)
            one.process.kill()
            assert one.process.wait() == -signal.SIGKILL
            cut_short(home)
            halves.append(len(tables(home)))
        return await wait(one)

    wait = local._serves
    monkeypatch.setattr(local, "_serves", serves)
    first = await ensure_server(home)
    await start_job(await client_of(first), "kept")
    await kill(home, first)
    second = await ensure_server(home)
    assert await is_running(await client_of(second), "kept")
    assert len(launched) == 3
    await kill(home, second)
    assert halves[0] < len(tables(home))


async def test_a_port_that_is_lost_is_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process listens on the chosen port first, and is gone when the server has ended:
    other ports are chosen.
    """
    chosen: list[local_process.Ports] = []

    def choose(preferred: local_process.Ports | None, *, ui: bool) -> local_process.Ports:
        chosen.append(free_ports(preferred, ui=ui))
        if len(chosen) == 1:
            taken.bind(("127.0.0.1", chosen[0].frontend))
            taken.listen()
        return chosen[-1]

    async def serves(launched: local_process.Launched) -> bool:
        served = await wait(launched)
        taken.close()
        return served

    free_ports, wait = local.free_ports, local._serves
    monkeypatch.setattr(local, "free_ports", choose)
    monkeypatch.setattr(local, "_serves", serves)
    with socket.socket() as taken:
        info = await ensure_server(home)
    assert (len(chosen), info.port) == (2, chosen[1].frontend)
    await kill(home, info)


async def test_server_that_dies_in_use_is_started_again(home: Home) -> None:
    """A client that was connected when the server was killed goes on at the same address, and
    nothing is lost.
    """
    async with server_in_use(home) as server:
        client = await client_of(server)
        await start_job(client, "kept")
        await kill(home, server)
        async with asyncio.timeout(200):
            while True:
                try:
                    assert await is_running(client, "kept")
                    break
                except RPCError:
                    await asyncio.sleep(0.1)


async def test_a_user_outlasts_trouble_of_the_host(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Who could not look after the server for a moment, as where no file could be opened, says so
    and starts it again once it can; leaving, it ends the server.
    """
    lock = home.server / "start.lock"
    async with server_in_use(home) as first:
        # A file that cannot be opened, for whoever it is.
        lock.rename(lock.with_suffix(".kept"))
        lock.mkdir()
        await kill(home, first)
        await eventually(lambda: str(lock) in caplog.text, "the word about the lock")
        lock.rmdir()
        await eventually(lambda: is_serving(home), "another server")
    assert not local_process.is_alive(home)


async def test_a_user_outlasts_settings_that_are_none(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody has half written them as the server dies: whoever uses it says what keeps it from
    being started again, and starts it once they are whole.
    """
    async with server_in_use(home) as first:
        home.settings.write_text('{"limit')
        await kill(home, first)
        told = f"{home.settings} is not JSON"
        await eventually(lambda: told in caplog.text, "the word about the settings")
        home.settings.write_text("{}")
        await eventually(lambda: is_serving(home), "another server")
    assert not local_process.is_alive(home)


async def test_a_port_that_is_taken_while_the_server_is_dead_is_waited_for(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever is connected knows no other, and would wait there for good. A server that was killed
    may hold it itself for a moment.
    """
    async with server_in_use(home) as server:
        client = await client_of(server)
        await start_job(client, "kept")
        with socket.socket() as taken:
            # Held until the port is taken, so that nobody starts the server first.
            async with local._start_lock(home):
                await kill(home, server)
                await eventually(lambda: local_process.port_is_free(server.port), "a free port")
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("127.0.0.1", server.port))
                taken.listen()
            told = f"port {server.port}, where the embedded Temporal server is looked for"
            await eventually(lambda: told in caplog.text, "the word about the port")

        async def goes_on() -> bool:
            try:
                return await is_running(client, "kept")
            except RPCError:
                return False

        await eventually(goes_on, "the server, where it was")
        assert caplog.text.count(told) == 1
        now = local_process.read_info(home)
        assert now is not None
        assert (now.port, now.pid != server.pid) == (server.port, True)


async def test_a_server_that_is_killed_before_it_is_connected_to_is_started_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has answered, and nobody is connected yet who would wait for it."""
    killed: list[int] = []

    def just_before() -> None:
        if not killed:
            killed.append(kill_at_once(home))
        begin_connecting()

    begin_connecting = connection.begin_connecting
    monkeypatch.setattr(connection, "begin_connecting", just_before)
    async with connection.connect(Target(), home=home) as connected:
        await start_job(connected.client, "kept")
        info = local_process.read_info(home)
        assert info is not None
        assert killed != [info.pid]


async def test_starter_killed_right_after_the_launch(home: Home) -> None:
    """A server whose starter was killed before it served is found, not started a second time on the
    same file.
    """
    starter = python(LAUNCH_AND_DIE, home)
    await asyncio.to_thread(starter.communicate)
    first = await ensure_server(home)
    assert (await server_status(home)).server == first
    assert first.pid == int((home.server / "alive.lock").read_text())
    assert home.log.read_text().count("Temporal Server") <= 1


@pytest.mark.parametrize("damage", ["", '{"pid": 12', "a pipe", "no end"])
async def test_broken_state_file_of_a_live_server(home: Home, damage: str) -> None:
    """A live server that nothing describes is ended and started again on the same database."""
    first = await ensure_server(home)
    await start_job(await client_of(first), "kept")
    state = home.server / "server.json"
    state.unlink()
    match damage:
        case "a pipe":
            os.mkfifo(state)
        case "no end":
            state.symlink_to("/dev/zero")
        case _:
            state.write_text(damage)
    second = await ensure_server(home)
    assert second.pid != first.pid
    assert await is_running(await client_of(second), "kept")


async def test_state_of_a_dead_server_names_a_live_process_and_a_taken_port(home: Home) -> None:
    """A process id given to another process and a port taken by one mislead nobody, and neither is
    touched.
    """
    first = await ensure_server(home)
    await kill(home, first)
    (home.server / "alive.lock").write_text(str(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)) as taker:
        taken = taker.getsockname()[1]
        state = home.server / "server.json"
        described = json.loads(state.read_text()) | {"pid": os.getpid(), "port": taken}
        state.write_text(json.dumps(described))
        assert (await server_status(home)).state is ServerState.STOPPED
        second = await ensure_server(home)
    assert second.port != taken
    assert await is_serving(home)


async def test_silent_server_is_replaced(home: Home) -> None:
    """A server process that lives and does not answer is killed and started again."""
    first = await ensure_server(home)
    os.kill(first.pid, signal.SIGSTOP)
    # On a busy machine a thread of its may answer once more before it stops.
    await eventually(lambda: _is_stopped(first.pid), "all threads of the server have stopped")
    with pytest.MonkeyPatch.context() as impatient:
        impatient.setattr(local, "ANSWER_SECONDS", 1.0)
        impatient.setattr(local, "SILENT_SECONDS", 0.1)
        assert (await server_status(home)).state is ServerState.SILENT
        second = await ensure_server(home)
    assert second.pid != first.pid
    assert await is_serving(home)


def _is_stopped(pid: int) -> bool:
    try:
        states = [
            (thread / "stat").read_text().rpartition(") ")[2]
            for thread in Path(f"/proc/{pid}/task").iterdir()
        ]
    except OSError:  # A thread has ended in the meantime.
        return False
    return all(state.startswith("T") for state in states)


async def test_server_that_cannot_start_says_why(home: Home) -> None:
    """A database that is none ends in an error with the log's place and its last lines, and no
    process.
    """
    home.database.write_bytes(b"this is no SQLite file" * 100)
    with pytest.raises(
        ServerError, match=r"is damaged\. Move it away .*server\.log:\n(.*\n)*.*not a database"
    ):
        await ensure_server(home)
    assert (await server_status(home)).state is ServerState.STOPPED


async def is_serving(home: Home) -> bool:
    return (await server_status(home)).state is ServerState.SERVING
