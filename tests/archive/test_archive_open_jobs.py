"""A turn reads nothing that the turn before wrote, however many jobs take turns."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from archive_jobs import Written, chat, write_run

from runtime.archive import keys
from runtime.archive.caches import Recent, RecentOfJobs, caches_of
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.errors import InputError
from runtime.base.open_jobs import open_jobs

JOBS = 150


class CountingStore(MemoryStore):
    """A store that counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``."""
        self.read[key] += 1
        return super().get(key)


@pytest.mark.slow
def test_jobs_that_take_turns_read_nothing_again() -> None:
    """With 150 open jobs as with one, after the turn in which each began."""
    store = CountingStore()
    jobs = [Written(JobArchive(store, "b", str(number))) for number in range(JOBS)]
    parents = [None] * JOBS
    layout_at = chat(random.Random(1), 40)
    for turn in range(1, 5):
        store.read.clear()
        parents = [
            write_run(job, "r", range(turn, turn + 1), parent, layout_at)
            for job, parent in zip(jobs, parents, strict=True)
        ]
    assert store.read == Counter()


@pytest.mark.slow
def test_whoever_goes_through_a_jobs_turns_reads_each_attempt_once() -> None:
    """Though the request of each turn is put together from those of many."""
    store = CountingStore()
    turns = range(1, 121)
    write_run(Written(JobArchive(store, "b", "j")), "r", turns, None, chat(random.Random(2)))
    caches_of(store).forget("b/j")
    store.read.clear()
    reader = JobArchive(store, "b", "j")
    for turn in turns:
        assert reader.turn_layout("r", turn)
    attempts = {key: times for key, times in store.read.items() if ".attempt-" in key}
    assert len(attempts) == len(turns)
    assert set(attempts.values()) == {1}


def test_what_is_kept_is_bounded_in_size() -> None:
    """What is too large by itself is not kept; what takes another's place counts once."""
    kept: Recent[str] = Recent(10, len)
    for name in ("aaaa", "bbb", "cc"):
        kept.put(name, name)
    assert kept.get("aaaa") == "aaaa"
    kept.put("dddd", "dddd")
    assert [kept.get(name) for name in ("aaaa", "bbb", "cc", "dddd")] == [
        "aaaa",
        None,
        "cc",
        "dddd",
    ]
    kept.put("cc", "cc")
    assert kept.get("aaaa") == "aaaa"
    kept.put("long", "a" * 11)
    assert [kept.get(name) for name in ("aaaa", "cc", "dddd", "long")] == [None] * 4
    kept.put("e", "e")
    assert kept.take("e") == "e"
    assert kept.get("e") is None


def test_a_job_keeps_no_more_than_its_own_share() -> None:
    """A long job pushes nothing of another out, and its own old values go."""
    kept: RecentOfJobs[int] = RecentOfJobs(2, jobs=2)
    kept.put("b/short/1", 0)
    for number in range(9):
        kept.put(f"b/long/{number}", number)
    assert [kept.get(f"b/long/{number}") for number in range(9)] == [None] * 7 + [7, 8]
    assert kept.get("b/short/1") == 0
    kept.put("b/third/1", 3)
    assert (kept.get("b/long/8"), kept.get("b/short/1"), kept.get("b/third/1")) == (None, 0, 3)


def test_a_process_that_ends_no_job_forgets_those_of_long_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where their runs began, and what of their side runs is named; those used last it knows."""
    monkeypatch.setenv("HOLDFAST_OPEN_JOBS", "2")
    store = CountingStore()
    archives = [JobArchive(store, "b", str(number)) for number in range(3)]
    layout_at = chat(random.Random(1), 40)
    parents = []
    for archive in archives:
        written = Written(archive)
        parent = write_run(written, "r", range(1, 2), None, layout_at)
        write_run(written, keys.side_run("r", "summary"), range(2, 3), parent, layout_at)
        parents.append(write_run(written, "r", range(2, 3), parent, layout_at))
        archive.lineage.spans("r")
    store.read.clear()
    for archive in reversed(archives):
        archive.lineage.spans("r")
    assert [store.read[f"b/{number}/runs/r"] for number in range(3)] == [1, 0, 0]
    named = [
        len(archive.naming.after("r", parent)["beside"])
        for archive, parent in zip(archives, parents, strict=True)
    ]
    assert named == [1, 0, 0]


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "\u0663", "1000001", "9" * 5000])
def test_another_number_of_open_jobs_is_refused(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable's name."""
    monkeypatch.setenv("HOLDFAST_OPEN_JOBS", given)
    with pytest.raises(InputError, match="HOLDFAST_OPEN_JOBS: expected a number from 1"):
        open_jobs()


def test_the_number_of_open_jobs_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable of the worker's environment."""
    monkeypatch.setenv("HOLDFAST_OPEN_JOBS", "40")
    assert open_jobs() == 40
