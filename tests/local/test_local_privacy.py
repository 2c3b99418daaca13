"""What other users of the machine, and web pages, get of the embedded server: its port, and nothing
besides.
"""

from __future__ import annotations

import http.client
import os
import stat
from pathlib import Path

import pytest

from runtime.archive.stores.directory import DirectoryStore
from runtime.base.home import Home
from runtime.server.embedded import server_in_use
from runtime.server.process import PASSED_ON

pytestmark = pytest.mark.server


async def test_the_server_is_given_no_key(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment holds nothing but what a program needs to run."""
    for name in (
        "OPENAI_API_KEY",
        "HOLDFAST_KEY",
        "HOLDFAST_SIGNING_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "MY_OWN",
    ):
        monkeypatch.setenv(name, "not the server's business")
    async with server_in_use(home) as server:
        given = _environment(server.pid)
    names = {item.partition("=")[0] for item in given.split("\0") if item}
    assert names <= {*PASSED_ON, "USER", "PWD", "OLDPWD", "SHLVL", "_"}
    assert "not the server's business" not in given


async def test_all_files_of_the_server_are_private(home: Home) -> None:
    """The database, the log, the locks and what says where the server is: no bit is set for anybody
    else.
    """
    before = os.umask(0)
    try:
        async with server_in_use(home):
            modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in home.server.rglob("*")}
    finally:
        os.umask(before)
    assert {
        home.database,
        home.log,
        home.server / "server.json",
        home.server / "start.lock",
    } <= modes.keys()
    assert {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


async def test_no_web_page_reaches_the_server(home: Home) -> None:
    """It has no web UI, and its HTTP API answers under no name that a page may have, this machine's
    among them.
    """
    async with server_in_use(home) as server:
        answers: dict[int, set[int]] = {}
        for port in _listening(server.pid) - {server.port}:
            for name in ("evil.example", "localhost", "127.0.0.1"):
                if (status := _answer(port, f"{name}:{port}")) is not None:
                    answers.setdefault(port, set()).add(status)
    assert {403} in answers.values(), "the HTTP API was not found"
    assert all(seen <= {403, 404} for seen in answers.values()), answers


def test_objects_of_an_archive_are_private(tmp_path: Path) -> None:
    """Whatever the umask, and in an archive whose root others may read: what is written is for its
    owner alone.
    """
    (tmp_path / "wide").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        for root in (tmp_path / "wide", tmp_path / "new"):
            assert DirectoryStore(root).put_if_absent("a/b/c", b"1")
            modes = {
                path.relative_to(root): path.stat().st_mode & 0o777 for path in root.rglob("*")
            }
            assert modes == {Path("a"): 0o700, Path("a/b"): 0o700, Path("a/b/c"): 0o600}
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def _environment(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode()


def _listening(pid: int) -> set[int]:
    """The TCP ports on which a process listens."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(descriptor.readlink()))
        except FileNotFoundError:
            continue
    inodes = {name[8:-1] for name in sockets if name.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes
    }


def _answer(port: int, host: str) -> int | None:
    """The status with which a port answers a request for namespaces under a name; None if it does
    not speak HTTP/1.1.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/v1/namespaces", headers={"Host": host})
        return connection.getresponse().status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()
