"""Hosts that share an S3 archive and nothing else: each has a state directory and a disk of its
own.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.trees import Trees
from runtime.archive.verify import damage, verify_job
from runtime.archive.workspaces import workspace_after
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.jobsfile.load import load_jobs_file
from runtime.server.connection import Target, connect
from tests.archive.s3_server import KEY, SECRET, S3Server
from tests.cli.command_line import CommandLine, script, wait_for
from tests.forks.forked import Forked

pytestmark = [
    pytest.mark.server,
    pytest.mark.s3,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.sandbox,
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an archive on a real S3 server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("HOLDFAST_KEY", base64.b64encode(bytes(32)).decode())
    server = S3Server(tmp_path / "s3")
    server.start()
    yield server.url("hosts")
    server.kill()


HERE = 'test "$(cat host)" = "$(cat /env/host)"'
"""Whether a command runs on the host on which the job's first one did."""


async def submitted(file: Path, address: str, store: str) -> None:
    """Start a batch's jobs, and leave them to the workers."""
    async with connect(Target(address=address)) as connection:
        control = Control(connection.client, open_store(store))
        await submit(control, await plan_batch(control, load_jobs_file(file), rerun_failed=False))


def half_done(home: Path) -> bool:
    """Whether the command of the second turn has written to its layer of the job's files."""
    for log in home.glob("workspaces/running/*/upper/log"):
        # The layer of the first turn's command goes meanwhile.
        with suppress(FileNotFoundError):
            if b"half" in log.read_bytes():
                return True
    return False


def test_a_host_vanishes_in_the_middle_of_a_command(
    cli: CommandLine, address: str, store: str, tmp_path: Path
) -> None:
    """With its disk. The other one makes the set-up anew, has the files of the version before from
    S3, and carries the command out once.
    """
    cli.write(
        "a.json",
        script(
            "sh('cat /env/host > host; echo 1 > log; mkdir d; echo 2 > d/e; chmod 700 d')",
            f"r = sh('echo half >> log; if {HERE}; then sleep 600; fi; echo whole >> log',"
            " timeout=900)",
            "finish([r.exit_code, open('log').read(), sh('stat -c %a d; cat d/e a.txt').stdout])",
        ),
    )
    cli.write("src/a.txt", "from the user\n")
    jobs = cli.jobs(
        "id: a, model: scripted/a.json, workspace: {from: ./src, write: true,"
        " setup: 'cat /proc/sys/kernel/random/uuid > /env/host'}",
        batch="hosts",
    )

    def host(name: str) -> tuple[Path, Forked]:
        home = tmp_path / name
        worker = cli.start(
            *("worker", "--address", address, "--store", store),
            HOLDFAST_HOME=str(home),
        )
        return home, worker

    archive = JobArchive(open_store(store), "hosts", "a")
    one, worker = host("one")
    asyncio.run(submitted(jobs, address, store))
    wait_for(lambda: half_done(one), "the command has written", worker)
    two, other = host("two")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()
    shutil.rmtree(one, ignore_errors=True)
    wait_for(
        lambda: bool(archive.runs()) and archive.end(archive.runs()[-1]) is not None,
        "the job ends",
        other,
    )
    run = archive.runs()[-1]
    end = archive.end(run)
    assert end is not None
    assert end.result == [0, "1\nhalf\nwhole\n", "700\n2\nfrom the user\n"]
    assert (len(archive.runs()), len(list(archive.steps()))) == (1, 3)
    assert damage(verify_job(archive)) == []
    trees = Trees(archive.store)
    for turn in range(4):
        for _, entry in trees.tree(workspace_after(archive, run, turn)).under():
            if entry.is_file:
                trees.content(entry)
    # A third machine, with nothing but the archive's address.
    log = cli("workspace", "cat", "hosts/a@1", "log", "--store", store)
    assert (log.code, log.out) == (0, "1\n")
    assert two.exists()
