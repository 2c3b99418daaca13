"""What a job may be called on the command line."""

from __future__ import annotations

import getpass
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.archive.catalog import all_jobs, archive_id, find_job
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.memory import MemoryStore
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import NotFound
from runtime.cli.caller import caller
from runtime.cli.main import main
from tests.archive.archive_jobs import Written, chat, write_run

JOBS = ["nightly/licences", "nightly/links", "nightly/old", "weekly/licences", "weekly/last"]


def filled(store: ObjectStore) -> ObjectStore:
    """Jobs of one turn each; the run ``b`` of nightly/old began last."""
    for name in JOBS:
        batch, _, job = name.partition("/")
        archive = JobArchive(store, batch, job)
        archive.write_definition({"goal": "g"})
        write_run(
            Written(archive),
            "b" if job == "old" else "a",
            range(1, 2),
            None,
            chat(random.Random(0)),
        )
    return store


@pytest.fixture(scope="module")
def store() -> ObjectStore:
    return filled(MemoryStore())


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("nightly/licences", "nightly/licences"),
        ("nightly/lin", "nightly/links"),
        ("lin", "nightly/links"),
        ("o", "nightly/old"),
        ("last", "nightly/old"),
        ("weekly/last", "weekly/last"),
    ],
)
def test_a_job_by_its_name_a_prefix_or_last(store: ObjectStore, given: str, found: str) -> None:
    """BATCH/ID, any prefix of that or of the id that only one job has, or the job that began
    last.
    """
    assert str(find_job(store, given)) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "l",
            (
                "'l' names more than one job: nightly/licences, nightly/links, weekly/last,"
                " weekly/licences"
            ),
        ),
        ("licences", "'licences' names more than one job: nightly/licences, weekly/licences"),
        (
            "nightly",
            "'nightly' names more than one job: nightly/licences, nightly/links, nightly/old",
        ),
        ("w", "'w' names more than one job: weekly/last, weekly/licences"),
        ("nope", "no job that has begun is called 'nope': 'holdfast ls' lists those"),
        ("nope/old", "no job that has begun is called 'nope/old': 'holdfast ls' lists those"),
        (
            "nightly/nope",
            (
                "no job that has begun is called 'nightly/nope': 'holdfast results nightly' tells"
                " of those too that have not"
            ),
        ),
        ("", "no job that has begun is called '': 'holdfast ls' lists those"),
    ],
)
def test_names_that_are_none(store: ObjectStore, given: str, message: str) -> None:
    """An ambiguous name is an error that lists what it may mean; an unknown one says where to
    look.
    """
    with pytest.raises(NotFound) as caught:
        find_job(store, given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "arguments",
    [
        *(["log"], ["show"], ["send", "text"]),
        *(
            pytest.param([name], marks=pytest.mark.slow)
            for name in ("condense", "pause", "resume", "cancel", "retry")
        ),
    ],
)
def test_every_command_exits_2(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No command takes a name that is none."""
    open_store(str(tmp_path))
    filled(DirectoryStore(tmp_path))
    for name in ("licences", "nope"):
        assert main([arguments[0], name, *arguments[1:], "--store", str(tmp_path)]) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: ")
        assert name in err


def test_nothing_has_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In an empty archive 'last' is an error that says how to begin, and 'ls' says it too."""
    with pytest.raises(
        NotFound, match="no job has begun yet: start some with 'holdfast run JOBS_FILE'"
    ):
        find_job(MemoryStore(), "last")
    open_store(str(tmp_path))
    assert main(["ls", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no jobs yet: start some with 'holdfast run JOBS_FILE'\n"


def test_a_batch_that_has_no_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """'ls' of a batch that is none is an error of one line, also for a program."""
    open_store(str(tmp_path))
    filled(DirectoryStore(tmp_path))
    for json in ([], ["--json"]):
        assert main(["ls", "nightl", "--store", str(tmp_path), *json]) == 2
        told = "error: no job of a batch 'nightl' has begun: 'holdfast ls' lists the jobs of all\n"
        assert capsys.readouterr() == ("", told)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An archive with jobs, which commands take where none is named."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    filled(open_store(str(tmp_path / "archive")))
    return str(tmp_path / "archive")


@pytest.mark.parametrize(
    "arguments",
    [
        *(["ls", ""], ["results", ""], ["cost", ""], ["errors", ""], ["watch", ""]),
        *(["export", "", "--format", "inspect"], ["compare", "", ""]),
        ["archive", "prune", "--batch", "", "--older-than", "1d"],
        *(["verify", ""], ["verify", "--profile", ""]),
        *(["ls", "--store", ""], ["verify", "--store", ""]),
        ["archive", "delete", "old", "--reason", "r", "--by", "b", "--store", ""],
    ],
)
def test_an_empty_name_names_nothing(
    archive: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """That of a variable which is not set: nothing else is taken in its place."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: " in err
    assert "''" in err


@pytest.mark.parametrize(
    "arguments", [["pause", "--batch", ""], ["resume", "--batch", ""], ["cancel", ""]]
)
def test_for_an_empty_name_no_server_is_started(
    archive: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor is one asked."""

    def refuse(*_: object) -> None:
        raise AssertionError("a server was asked")

    monkeypatch.setattr("runtime.server.connection.connect", refuse)
    monkeypatch.setattr("runtime.cli.reach.connect", refuse)
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", "error: '' names no job and no batch\n")


class Counting(MemoryStore):
    """Counts the keys that are listed and the objects that are read."""

    looked = 0

    def get(self, key: str) -> bytes:
        self.looked += 1
        return super().get(key)

    def list(self, prefix: str) -> Iterator[str]:
        keys = list(super().list(prefix))
        self.looked += len(keys)
        return iter(keys)

    def folders(self, prefix: str) -> Iterator[str]:
        # The in-memory store has no folders and makes them from a list.
        before = self.looked
        yield from super().folders(prefix)
        self.looked = before


def test_finding_a_job_looks_at_no_jobs_objects() -> None:
    """The names come from the folders alone, however many turns the jobs have."""
    store = Counting()
    filled(store)
    store.looked = 0
    assert [str(name) for name in all_jobs(store)] == sorted(JOBS)
    assert str(find_job(store, "lin")) == "nightly/links"
    assert store.looked == 0


def test_an_archives_own_name_stays(tmp_path: Path) -> None:
    """It is made once, and is the same by whatever address the archive is reached."""
    first = archive_id(DirectoryStore(tmp_path))
    assert archive_id(DirectoryStore(tmp_path)) == first
    assert archive_id(DirectoryStore(tmp_path / "other")) != first
    assert all_jobs(DirectoryStore(tmp_path / "other")) == []


def test_a_user_whom_the_system_does_not_know_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is given a mere number as its user."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert caller() == f"{os.getuid()}@{socket.gethostname()}"
