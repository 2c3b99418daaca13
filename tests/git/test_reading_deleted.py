"""What commands say of a job that another one deletes while they read it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.archive.lifecycle.deletion import Wish, delete_jobs
from runtime.archive.stores import open_store
from runtime.archive.stores.directory import DirectoryStore
from runtime.cli.main import main
from tests.cli.command_line import CommandLine
from tests.git.jobs import hands_job

DELETED = "hands/one was deleted by ann at 2026-11-29T00:00:00+00:00: case 7"
STATEMENTS = [("write('b', 'x')", {"b": b"x\n"}), ("x = 1", {}), ("finish(1)", {})]


class Deleting:
    """Deletes ``hands/one`` before the ``at``-th look at an archive; none for 0."""

    def __init__(self, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.archive, self.at, self.looks = archive, 0, 0
        get, listed = DirectoryStore.get, DirectoryStore.list

        def looked_get(store: DirectoryStore, key: str) -> bytes:
            self._look()
            return get(store, key)

        def looked_list(store: DirectoryStore, prefix: str) -> Iterator[str]:
            self._look()
            return listed(store, prefix)

        monkeypatch.setattr(DirectoryStore, "get", looked_get)
        monkeypatch.setattr(DirectoryStore, "list", looked_list)

    def _look(self) -> None:
        self.looks += 1
        if self.looks == self.at:
            wish = Wish(by="ann", at="2026-11-29T00:00:00+00:00", reason="case 7", signer=None)
            delete_jobs(open_store(str(self.archive)), ["hands/one"], wish, tell=lambda _: None)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive of two jobs; the commands read a copy, which is made anew for each."""
    store = open_store(str(tmp_path / "kept"))
    for job in ("one", "two"):
        hands_job(store, {"a": b"1\n2\n"}, STATEMENTS, job=job)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    return tmp_path / "kept"


OF_BATCH = "export hands --format inspect"
QUICK = ("log hands/one --effects", "show hands/one@2", "blame hands/one b", "diff hands/one@2")
SLOW = (
    *("export hands/one", "export hands/one --format otel", "export hands/one --delta"),
    *("export hands/one --format inspect", OF_BATCH),
    *("blame hands/one@2", "workspace diff hands/one", "workspace patch hands/one"),
    *("compare hands/one hands/two", "results hands --json", "verify --all --json"),
)


@pytest.mark.parametrize(
    "command", [*QUICK, *(pytest.param(command, marks=pytest.mark.slow) for command in SLOW)]
)
def test_a_deletion_is_told_and_no_damage(
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """Whenever it comes, with exit code 2, and nothing that was cut off passes for all there is.
    Of a batch the other jobs are told.
    """
    archive = tmp_path / "home" / "archive"
    shutil.copytree(kept, archive)
    deleting = Deleting(archive, monkeypatch)
    assert main(command.split()) == 0
    whole = capsys.readouterr().out
    while deleting.at <= deleting.looks:
        shutil.rmtree(archive, ignore_errors=True)
        shutil.copytree(kept, archive)
        deleting.at, deleting.looks = deleting.at + 1, 0
        code = main(command.split())
        out, err = capsys.readouterr()
        if command.startswith(("results", "verify")):
            assert (code, "two" in out) == (0, True), (deleting.at, out, err)
        elif code == 0:
            # It came when all was told, or before it was seen what the batch has.
            others = command == OF_BATCH and '"sample_ids": ["two"]' in out
            assert (out == whole or others, "deleted" in err) == (True, False)
        else:
            assert (code, DELETED in err) == (2, True), (deleting.at, err)
    assert deleting.at > 5


@pytest.mark.kill
def test_what_is_left_by_a_deletion_that_was_broken_off_is_told_as_that(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It looked like a job that was killed."""
    shutil.copytree(kept, tmp_path / "home" / "archive")
    cli = CommandLine(tmp_path, tmp_path / "home", capsys)
    delete = ("archive", "delete", "hands/one", "--reason", "case 7", "--by", "ann")
    point = {"HOLDFAST_FAILPOINT": "archive.delete.mid_job:1"}
    assert cli.finished(cli.start(*delete, **point)).code == -signal.SIGKILL
    for command in (("log", "hands/one"), ("export", "hands/one"), ("show", "hands/one@1")):
        done = cli(*command)
        assert done.code == 0, (command, done.err)
        assert "hands/one was deleted by ann at " in done.err
        assert "case 7: this is of what is left of it\n" in done.err
    assert cli("log", "hands/two").err.count("deleted") == 0
    assert cli(*delete).code == 0
    assert cli("log", "hands/one").code == 2
