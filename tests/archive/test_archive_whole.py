"""Nothing that an archive holds can vanish or change unseen: every object is covered by a digest
that is checked.
"""

from __future__ import annotations

import random

import pytest
from archive_jobs import Written, chat, rich_archive, write_run

from runtime.archive.catalog import all_jobs
from runtime.archive.forms import NewEnd
from runtime.archive.heads import ArchiveHead, head_of, lost_shared, shared_digests
from runtime.archive.job import JobArchive
from runtime.archive.keys import job_prefix
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, examine_job, verify_job

RICH = MemoryStore()
JOBS = rich_archive(RICH)
KEYS = list(RICH.list(""))
UNNAMED = {
    "_holdfast/summaries/5e.claims/00000001": "a sign between workers, which no record names",
    "nightly/licences/ends/b": "the end of a run",
    "nightly/short/ends/second": "the end of a run",
    "nightly/licences/turns/a/00000/0000035.attempt-001": "an attempt in flight",
}
"""What nothing inside an archive covers: heads, and what leads to nothing.

Only a head that was kept elsewhere does.
"""


def head() -> ArchiveHead:
    examined = [examine_job(JobArchive.of(RICH, name)) for name in all_jobs(RICH)]
    return head_of(
        examined, shared_digests(RICH), archive=None, made_at="2026-01-01T00:00:00Z", signer=None
    )


HEAD = head()


def copy() -> MemoryStore:
    store = MemoryStore()
    for key in KEYS:
        store.put_if_absent(key, RICH.get(key))
    return store


def reported(store: MemoryStore, kept: ArchiveHead | None) -> set[str]:
    """The keys of what ``verify --all`` calls damaged."""
    found: set[str] = set() if kept is None else {key for key, _ in lost_shared(store, kept)}
    names = {*all_jobs(store), *(() if kept is None else kept.jobs)}
    for name in names:
        tips = [] if kept is None else kept.of_job(job_prefix(name.batch, name.job))
        found |= {finding.key for finding in damage(verify_job(JobArchive.of(store, name), tips))}
    return found


def test_a_rich_archive_is_whole() -> None:
    """Nothing of it is damaged, and a head of few objects covers all of it."""
    assert reported(RICH, HEAD) == set()
    assert set(HEAD.tips) == UNNAMED.keys()
    assert len(KEYS) > 60


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_deletion_is_found_from_within(key: str) -> None:
    """Whatever is deleted, what remains tells of it by its key, without anything kept elsewhere;
    but for heads.
    """
    store = copy()
    store.replace(key, None)
    assert (key in reported(store, None)) == (key not in UNNAMED)


@pytest.mark.parametrize("flips", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", KEYS)
def test_a_head_that_was_kept_finds_every_deletion_and_every_flip(key: str, flips: int) -> None:
    """Heads, attempts in flight and loose ends included."""
    store = copy()
    store.replace(key, None)
    assert key in reported(store, HEAD)
    rng = random.Random(key)
    for _ in range(flips):
        data = bytearray(RICH.get(key))
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (
            store.replace(key, bytes(data))
            if key in set(store.list(""))
            else store.put_if_absent(key, bytes(data))
        )
        assert key in reported(store, HEAD)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 60))]
)
def test_two_objects_that_change_places_are_found(seed: int) -> None:
    """Any two: both are told."""
    one, other = random.Random(seed).sample(KEYS, 2)
    store = copy()
    store.replace(one, RICH.get(other))
    store.replace(other, RICH.get(one))
    assert {one, other} <= reported(store, HEAD)


@pytest.mark.parametrize("gone", ["licences", "short"])
def test_a_whole_job_that_vanished_is_found(gone: str) -> None:
    """By the head that was kept; of a job that another was forked from, also by the fork."""
    store = copy()
    for key in KEYS:
        if key.startswith(f"nightly/{gone}/"):
            store.replace(key, None)
    assert any(key.startswith(f"nightly/{gone}/") for key in reported(store, HEAD))
    inside = any(key.startswith(f"nightly/{gone}/") for key in reported(store, None))
    assert inside == (gone == "licences")


@pytest.mark.parametrize(
    ("job", "run", "found"),
    [("licences", "a", True), ("short", "first", True), ("short", "first~group-34-1", True)],
)
def test_a_whole_run_that_vanished_is_found(job: str, run: str, found: bool) -> None:
    """A later run's start names the heads of those before; a step names the calls that wrote
    summaries.
    """
    store = copy()
    inside = (
        f"nightly/{job}/turns/{run}/",
        f"nightly/{job}/runs/{run}",
        f"nightly/{job}/ends/{run}",
    )
    for key in KEYS:
        if key.startswith(inside):
            store.replace(key, None)
    assert any(key.startswith(inside) for key in reported(store, None)) == found


@pytest.mark.parametrize(
    ("status", "damaged"), [("succeeded", True), ("cancelled", False), ("budget", False)]
)
def test_a_result_that_came_after_its_run_was_cut_short_is_no_damage(
    status: str, damaged: bool
) -> None:
    """The worker of a call hears of the end at its next heartbeat. Of a run that ended by itself a
    call is waited for, and its result named.
    """
    archive = JobArchive(MemoryStore(), "b", "j")
    written = Written(archive)
    parent = write_run(written, "r", range(1, 4), None, chat(random.Random(3)))
    archive.write_end(NewEnd(run="r", turn=3, parent=parent, status=status))
    assert damage(verify_job(archive)) == []
    archive.write_effect("r", 3, 0, {"value": "late"})
    (finding,) = (one for one in verify_job(archive) if ".effect-" in one.key)
    assert finding.message.startswith("is a tool result that no step names")
    assert bool(damage(verify_job(archive))) == damaged


@pytest.mark.parametrize("harm", ["cut", "lost"])
def test_a_step_that_cannot_be_read_is_told_of_alone(harm: str) -> None:
    """What comes after it is as it was written, as far as anybody can tell."""
    store = MemoryStore()
    written = Written(JobArchive(store, "b", "j"))
    write_run(written, "r", range(1, 4), None, chat(random.Random(3)))
    key = "b/j/turns/r/00000/0000001.step"
    if harm == "cut":
        store.replace(key, store.get(key)[:100])
    else:
        store.remove(key)
    found = damage(verify_job(JobArchive(store, "b", "j")))
    assert [one.key for one in found if one.key != key and key not in one.message] == []
    assert found
