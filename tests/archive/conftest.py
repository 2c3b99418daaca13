"""The stores that the archive's tests run over: memory, a directory, and a real S3 server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import KEY, SECRET, S3Server

from runtime.archive.stores import MemoryStore, ObjectStore, open_store
from tests.forks.scripts import Scripts, scripts


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture(params=["memory", "directory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "directory":
        return open_store(str(tmp_path / "archive"))
    request.getfixturevalue("aws")
    server: S3Server = request.getfixturevalue("s3_server")
    return open_store(server.url(uuid.uuid4().hex))


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Iterator[Scripts]:
    """Runs scripts as ``python -c`` does, in processes that have loaded the tests' module."""
    with scripts(request.module.__name__) as made:
        yield made
