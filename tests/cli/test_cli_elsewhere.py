"""A server that was started separately, and workers of other processes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.stores import open_store
from runtime.connection import Target, connect
from runtime.control import Control
from runtime.spec.load import load_jobs_file
from runtime.temporal_binary import installed_binary
from runtime.watch import Ended, Watch
from tests.cli.command_line import CommandLine, script, wait_for

pytestmark = pytest.mark.server


@asynccontextmanager
async def a_server() -> AsyncIterator[str]:
    """The address of a Temporal dev server that is nobody's embedded one."""
    binary = installed_binary()
    assert binary is not None
    async with await WorkflowEnvironment.start_local(dev_server_existing_path=str(binary)) as environment:
        yield environment.client.service_client.config.target_host


@pytest.fixture
def address() -> Iterator[str]:
    with asyncio.Runner() as runner:
        server = a_server()
        yield runner.run(server.__aenter__())
        runner.run(server.__aexit__(None, None, None))


async def submitted_and_watched(file: Path, address: str, store: str) -> list[str]:
    """What a client without a worker sees of a batch: the ends, in order."""
    async with connect(Target(address=address)) as connection:
        control = Control(connection.client, open_store(store))
        plan = await control.plan(load_jobs_file(file), rerun_failed=False)
        await control.submit(plan)
        events = [event async for event in Watch(control, plan).events()]
    return [f"{event.outcome.key} {event.outcome.status}" for event in events if isinstance(event, Ended)]


def test_a_worker_elsewhere(cli: CommandLine, address: str, tmp_path: Path) -> None:
    """'holdfast worker' does the jobs of batches whose archive is its own, and says which it leaves alone; then it drains."""
    store = str(tmp_path / "shared")
    cli.write("one.yaml", script("x = 1", "finish(x)"))
    mine = cli.jobs("id: a, model: scripted/one.yaml", batch="mine", name="mine.yaml")
    worker = cli.start("worker", "--address", address, "--store", store)
    assert asyncio.run(submitted_and_watched(mine, address, store)) == ["mine/a succeeded"]
    worker.terminate()
    done = cli.finished(worker)
    assert (done.code, done.out) == (0, "")
    first, *rest = done.err.splitlines()
    assert (
        first == f"waiting for batches on server {address}, archive {store}; Ctrl-C drains, a second one stops at once"
    )
    assert rest[0] == "working on batch mine"

    again = cli("run", mine, "--address", address, "--store", store)
    assert (again.code, again.out.splitlines()[0]) == (0, f"batch mine: 1 done (server {address})")
    refused = cli("run", mine, "--address", address)
    assert (refused.code, f"batch 'mine' has its archive in {store}" in refused.err) == (2, True)

    wait_for(lambda: worker.poll() is not None, "the worker's end")


def test_a_server_that_is_not_there(cli: CommandLine, tmp_path: Path) -> None:
    """One line that names the address and says what to do, exit 1; what only reads the archive says it as a note."""
    cli.write("one.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/one.yaml", batch="nowhere")
    done = cli("run", file, "--address", "127.0.0.1:9")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("error: no connection to the Temporal server at 127.0.0.1:9: ")
    assert "or leave it out to use the embedded server" in done.err
    assert cli("ls", "--address", "127.0.0.1:9").code == 0
