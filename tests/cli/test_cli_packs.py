"""A job of many turns, which stand in packs: every command does with it as with another."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.archive.stores.directory import DirectoryStore
from tests.cli.command_line import CommandLine, script

pytestmark = pytest.mark.server

TURNS = 36
JOB = "packed/a"


def packs(store: Path, job: str = JOB) -> list[str]:
    return [key.rpartition("/")[2] for key in DirectoryStore(store).list(f"{job}/packs/")]


def test_commands_read_replay_fork_copy_and_delete_a_packed_job(cli: CommandLine) -> None:
    """A frozen replay from a packed turn, an edited one and a fork differ in nothing that they
    should not; the archive is whole after each, a copy has it all, and a deletion leaves no file.
    """
    statements = [f"n = {turn}" for turn in range(1, TURNS)]
    cli.write("a.json", script(*statements, "finish(n)"))
    job = f"id: a, model: scripted/a.json, budget: {{turns: {TURNS + 4}}}"
    assert cli("run", cli.jobs(job, batch="packed")).code == 0
    archive = cli.home / "archive"
    assert packs(archive) == ["0000000", "0000032"]
    assert len(cli("log", JOB, "--json").json()["turns"]) == TURNS
    shown = cli("show", f"{JOB}@7", "--part", "statement", "--json").json()
    assert shown["statement"]["statement"] == "n = 7"

    frozen = cli("replay", JOB, "--from", "9", "--mode", "reexecute", "--frozen")
    assert (frozen.code, frozen.err) == (0, "")
    assert f"no divergence in {TURNS - 8} statements" in frozen.out
    edit = cli.write("edit.py", "n = 400\n")
    edited = cli("replay", JOB, "--from", "20", "--edit", edit, "--json")
    assert (edited.code, edited.json()[0]["status"]) == (0, "succeeded")
    forked = cli("fork", f"{JOB}@5", "--as", "b", "--json")
    assert (forked.code, forked.json()[0]["status"]) == (0, "succeeded")
    # Each run has its own turns of the interval in a pack of its own.
    assert packs(archive) == ["0000000", "0000032"] * 3
    assert packs(archive, "packed/b") == ["0000000", "0000032"]
    # Not all: other tests have their jobs in the same archive.
    assert [cli("verify", name).code for name in (JOB, "packed/b")] == [0, 0]
    lines = cli("export", JOB).out.splitlines()
    assert sum('"type": "step"' in line or '"type":"step"' in line for line in lines) == TURNS

    copy = cli.home.parent / "copy"
    # Those of its batch: other tests have damaged jobs in the same archive.
    assert cli("archive", "copy", str(archive), str(copy), "--batch", "packed").code == 0
    assert packs(copy) == packs(archive)
    assert cli("verify", JOB, "--store", str(copy)).code == 0
    assert cli("archive", "hold", JOB, "--reason", "case 7").code == 0
    held = cli("archive", "delete", JOB, "packed/b", "--reason", "asked")
    assert (held.code, packs(archive)) == (2, packs(copy))
    assert cli("archive", "release", JOB, "--reason", "over").code == 0
    done = cli("archive", "delete", JOB, "packed/b", "--reason", "asked")
    # Not its words: other tests may have left jobs open in the same archive, which is told.
    assert done.code == 0
    assert list(DirectoryStore(archive).list("packed/")) == []
