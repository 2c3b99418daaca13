"""The names of the archive's objects."""

from __future__ import annotations

import random

import pytest
from archive_jobs import Written, chat, write_run

from runtime.archive import keys
from runtime.archive.calls import side_calls
from runtime.archive.job import JobArchive
from runtime.archive.recorded import begun_with
from runtime.archive.stores import MemoryStore, check_store


def test_what_lies_beside_an_attempt_lies_there_whatever_its_job_is_called() -> None:
    """A batch and a job may have an object's kind in their names."""
    attempt = keys.attempt_key("b.attempt-1/j.attempt-2", "run", 41, 3)
    place = keys.parse_turn_key(attempt)
    for key, kind in (
        (keys.failure_key(attempt), "failure"),
        (keys.exchange_key(attempt), "exchange"),
    ):
        assert key == attempt.removesuffix("attempt-003") + f"{kind}-003"
        beside = keys.parse_turn_key(key)
        assert place is not None
        assert beside is not None
        assert (beside.job, beside.run, beside.turn, beside.kind) == (
            *(place.job, place.run, place.turn),
            kind,
        )


@pytest.mark.parametrize("job", ["b/turns", "turns/a", "b/ends", "b.attempt-1/a"])
def test_a_job_named_as_a_part_of_keys_has_the_keys_of_others(job: str) -> None:
    """What a key is of is told by its end, whatever its batch and its job are called."""
    prefix = keys.run_prefix(job, "r")
    start, end = keys.run_key(job, "r"), keys.end_key(job, "r")
    attempt, step = keys.attempt_key_in(prefix, 1, 1), keys.step_key(job, "r", 1)

    assert keys.run_key_of(prefix) == start
    assert [key for key in (start, end, attempt, step) if keys.is_end(key)] == [end]
    assert [key for key in (start, end, attempt, step) if keys.is_attempt(key)] == [attempt]


@pytest.mark.parametrize("name", ["turns", "packs", "ends"])
def test_a_job_may_be_called_as_the_archives_folders_are(name: str) -> None:
    """Its side calls, and what it began with, are found as another's."""
    archive = JobArchive(MemoryStore(), "nightly", name)
    check_store(archive.store, "memory")
    written, layout_at = Written(archive), chat(random.Random(1), 50)
    archive.write_definition({"goal": "g"})
    archive.write_effect("a", 1, 750_000, {"offered": "first"})
    parent = write_run(written, "a", range(1, 3), None, layout_at)
    write_run(written, keys.side_run("a", "s1"), range(3, 4), parent, layout_at)
    assert [(call.run, call.turn) for call in side_calls(archive, "a", [])] == [("a~s1", 3)]
    assert begun_with(archive, "a", 1, 750_000) == {"offered": "first"}
