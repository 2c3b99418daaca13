"""A command line for each test, on one embedded server for all: it is kept by ``holdfast up``, so
commands are quick.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from temporalio.testing import WorkflowEnvironment

from runtime.cli.main import main
from runtime.client import control, standing
from runtime.server.binary import installed_binary
from runtime.worker.nursery import Nursery
from tests.cli.command_line import DEADLINE, CommandLine
from tests.forks.crew import begun_by_fork
from tests.servers.temporal_server import START


@pytest.fixture(scope="session")
def kept_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory whose server is kept up."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.setenv("TEMPORAL_CONFIG_FILE", str(home / "none.toml"))
        patch.delenv("TEMPORAL_ADDRESS", raising=False)
        assert main(["up"]) == 0
        yield home
        patch.setenv("HOLDFAST_HOME", str(home))
        assert main(["down"]) == 0


@pytest.fixture
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server, no archive and no key from outside."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "HOLDFAST_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setenv("HOLDFAST_PROCESSES", "1")
    # Else each command in this process that has a crew would load litellm once more.
    monkeypatch.setattr(Nursery, "_started", begun_by_fork)


@pytest.fixture
def cli(
    tmp_path: Path,
    clean_environment: None,
    kept_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[CommandLine]:
    """A directory of its own, on the kept server."""
    monkeypatch.setenv("HOLDFAST_HOME", str(kept_home))
    made = CommandLine(tmp_path, kept_home, capsys)
    yield made
    made.end()


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is there answers commands in this process, on however busy a machine: they tell
    less of jobs where none answers for some seconds.
    """
    for module in (control, standing):
        monkeypatch.setattr(module, "ANSWER_WITHIN", timedelta(seconds=DEADLINE))


@pytest.fixture
def signing_keys(cli: CommandLine) -> tuple[Path, Path]:
    """A private key and its public half, as files."""
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = (
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    )
    return cli.write("signing.pem", pem), cli.write("public.pem", public)


@pytest.fixture
def own_cli(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[CommandLine]:
    """A directory and a state directory of its own: its server comes and goes with its commands."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    made = CommandLine(tmp_path, home, capsys)
    yield made
    made.end()
    assert main(["down"]) == 0


@asynccontextmanager
async def _a_server() -> AsyncIterator[str]:
    """The address of a Temporal dev server that is nobody's embedded one."""
    binary = installed_binary()
    assert binary is not None
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary), dev_server_startup_timeout=START
    ) as environment:
        yield environment.client.service_client.config.target_host


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a Temporal server that belongs to no state directory."""
    with asyncio.Runner() as runner:
        server = _a_server()
        yield runner.run(server.__aenter__())
        runner.run(server.__aexit__(None, None, None))
