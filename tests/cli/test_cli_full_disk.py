"""A disk without room, under the archive and under the server: it is told at once, and the jobs go
on when there is some.
"""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.archive.stores import open_existing
from runtime.cli.disks import tell_of_full_disks
from runtime.worker.doctor import machine
from runtime.worker.doctor.finding import Verdict
from tests.cli.command_line import DEADLINE, UNHURRIED, CommandLine, wait_for
from tests.eventually import eventually
from tests.small_disk import fill, small_disk

MODEL = """
import pathlib

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    ends = n >= {turns} and pathlib.Path({gate!r}).exists()
    return {{"code": f"finish({{n}})" if ends else f"x = {{n}}", "delay": 0.5}}
"""
"""Takes ``turns`` turns, and more until the file ``gate`` is there; finishes with their number."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "40m") as folder:
        yield folder


@pytest.mark.server
@pytest.mark.parametrize("place", ["archive", "server"])
def test_a_full_disk_is_told_and_outlived(
    own_cli: CommandLine, disk: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is full the command says so and runs on; with room again the jobs of the batch end,
    those that waited for a place too, as if nothing had been.
    """
    home, store = (
        (own_cli.home, disk) if place == "archive" else (disk / "home", own_cli.path / "store")
    )
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    jobs, turns, gate = 4, 8, own_cli.path / "gate"
    own_cli.write("m.py", MODEL.format(turns=turns, gate=str(gate)))
    many = f"id: 'a{{n}}', count: {jobs}, model: scripted/m.py, {UNHURRIED}"
    file = own_cli.jobs(many, batch="b", head="concurrency: 2")
    log = own_cli.path / "told"
    process = own_cli.start("run", file, "--store", str(store))
    with log.open("wb") as told:
        assert process.stderr is not None
        reader = subprocess.Popen(["cat"], stdin=process.stderr, stdout=told)
    wait_for(lambda: len(list((store / "b").rglob("*.step"))) >= 4, "four turns", process)
    ballast = fill(disk)
    full = store if place == "archive" else home / "server"
    wait_for(
        lambda: f"the disk of {full} is full: free space" in log.read_text(), "it is told", process
    )
    gate.touch()
    ballast.unlink()
    wait_for(
        lambda: f"the disk of {full} has room again" in log.read_text(),
        "that there is room is told",
        process,
    )
    assert process.wait(timeout=DEADLINE) == 0
    reader.wait(timeout=DEADLINE)
    assert "Traceback" not in log.read_text()
    archive = open_existing(str(store))
    steps = Counter(key.split("/")[1] for key in archive.list("b/") if key.endswith(".step"))
    rows = own_cli("results", "b", "--store", str(store), "--json").json()
    assert [(row["status"], row["result"] >= turns) for row in rows] == [("succeeded", True)] * jobs
    assert steps == {row["id"]: row["result"] + 1 for row in rows}
    assert own_cli("down").code == 0


async def test_a_disk_that_can_hold_no_more_files_is_full_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many bytes are free; the line says what it lacks, and so does the doctor."""
    monkeypatch.setattr("runtime.cli.disks.LOOK_SECONDS", 0.01)
    told: list[str] = []
    with small_disk(tmp_path / "disk", "40m,nr_inodes=100") as disk:
        for name in range(90):
            (disk / str(name)).touch()
        telling = asyncio.create_task(tell_of_full_disks([disk], told.append, "holdfast run j"))
        try:
            await eventually(lambda: len(told) == 1, "it is told")
            [full] = told
            assert full.startswith(
                f"the disk of {disk} is full, as it can hold no further files (inodes): delete"
                " some, and the jobs go on"
            )
            finding = machine.room({"archive": disk})
            assert (finding.verdict, finding.seen) == (
                Verdict.FAILED,
                "archive 0.0 GiB free for 9 files",
            )
            for name in range(60):
                (disk / str(name)).unlink()
            await eventually(lambda: len(told) == 2, "that there is room is told")
        finally:
            telling.cancel()
    assert told[1] == f"the disk of {disk} has room again: the jobs go on"
