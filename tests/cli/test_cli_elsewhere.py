"""A server that was started separately, and workers of other processes."""

import asyncio
from pathlib import Path

import pytest
from temporalio.common import WorkerDeploymentVersion

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.client.watch import Ended, Watch
from runtime.jobsfile.load import load_jobs_file
from runtime.server.connection import Target, connect
from tests.cli.command_line import CommandLine, script, wait_for
from tests.deployments import make_current

pytestmark = pytest.mark.server


async def submitted_and_watched(file: Path, address: str, store: str) -> list[str]:
    """What a client without a worker sees of a batch: the ends, in order."""
    async with connect(Target(address=address)) as connection:
        control = Control(connection.client, open_store(store))
        plan = await plan_batch(control, load_jobs_file(file), rerun_failed=False)
        await submit(control, plan)
        events = [event async for event in Watch(control, plan).events()]
    return [
        f"{event.outcome.key} {event.outcome.status}"
        for event in events
        if isinstance(event, Ended)
    ]


def test_a_worker_elsewhere(cli: CommandLine, address: str, tmp_path: Path) -> None:
    """'holdfast worker' does the jobs of batches whose archive is its own, and says which it leaves
    alone; then it drains.
    """
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
        first
        == f"waiting for batches on server {address}, archive {store}; Ctrl-C drains, a second one"
        " stops at once"
    )
    assert rest[0] == "working on batch mine"

    again = cli("run", mine, "--address", address, "--store", store)
    assert (again.code, again.out.splitlines()[0]) == (0, f"batch mine: 1 done (server {address})")
    refused = cli("run", mine, "--address", address)
    assert (refused.code, f"batch 'mine' has its archive in {store}" in refused.err) == (2, True)

    wait_for(lambda: worker.poll() is not None, "the worker's end")


def test_a_replay_for_a_worker_elsewhere(cli: CommandLine, address: str, tmp_path: Path) -> None:
    """A job that was reset, and one that was forked, are worked on though their batch has ended;
    another archive's are left alone.
    """
    store = str(tmp_path / "shared")
    cli.write("one.yaml", script("x = 1", "finish(x)"))
    file = cli.jobs("id: a, model: scripted/one.yaml", batch="ended")
    there = ("--address", address, "--store", store)
    assert cli("run", file, *there).code == 0
    cli.write("edit.py", "x = 2")
    edited = ("--edit", cli.path / "edit.py", "--detach", "--json", *there)
    assert [one["job"] for one in cli("replay", "ended/a", "--from", "1", *edited).json()] == [
        "ended/a"
    ]
    assert [one["job"] for one in cli("fork", "ended/a@1", "--as", "b", *edited).json()] == [
        "ended/b"
    ]
    worker = cli.start("worker", "--deployment", "holdfast", "--build", "1.a", *there)
    refused = cli("worker", "--build", "x")
    assert (refused.code, "goes with --deployment" in refused.err) == (2, True)
    with asyncio.Runner() as runner:
        runner.run(given_new_runs(address, WorkerDeploymentVersion("holdfast", "1.a")))
    archives = [JobArchive(open_store(store), "ended", job) for job in ("a", "b")]
    wait_for(
        lambda: [results(archive) for archive in archives] == [[1, 2], [2]], "both jobs end", worker
    )
    worker.terminate()
    done = cli.finished(worker)
    assert done.code == 0
    assert done.err.splitlines()[1:3] == [
        "version 1.a of deployment holdfast",
        "working on batch ended",
    ]


def results(archive: JobArchive) -> list[object]:
    """What the runs of a job came to that have ended."""
    ends = [archive.end(run) for run in archive.runs()]
    return [end.result for end in ends if end is not None]


async def given_new_runs(address: str, version: WorkerDeploymentVersion) -> None:
    """Have the server at ``address`` give new runs to a version."""
    async with connect(Target(address=address)) as connection:
        await make_current(connection.client, version)


def test_a_server_that_is_not_there(cli: CommandLine, tmp_path: Path) -> None:
    """One line that names the address and says what to do, exit 1; what only reads the archive says
    it as a note.
    """
    cli.write("one.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/one.yaml", batch="nowhere")
    done = cli("run", file, "--address", "127.0.0.1:9")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("error: no connection to the Temporal server at 127.0.0.1:9: ")
    assert "or leave it out to use the embedded server" in done.err
    assert cli("ls", "--address", "127.0.0.1:9").code == 0
