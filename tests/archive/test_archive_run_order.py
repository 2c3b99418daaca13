"""The order of runs, where clocks are wrong."""

from __future__ import annotations

import random

import pytest
from archive_jobs import Written, chat, write_run
from hypothesis import given
from hypothesis import strategies as st

from runtime.archive.forms import NewAttempt, NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.run_order import oldest_first
from runtime.archive.standings import standing_of
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, examine_job


def at(hour: int, minute: int = 0) -> str:
    return f"2026-05-01T{hour:02}:{minute:02}:00.000000+00:00"


def written(monkeypatch: pytest.MonkeyPatch, *runs: tuple[str, int, str]) -> JobArchive:
    """A job of runs, one after another: the name of each, the hour of its clock, how it ended."""
    job = Written(JobArchive(MemoryStore(), "b", "j"))
    job.archive.write_definition({"goal": "g"})
    begin = JobArchive.begin_attempt
    for run, hour, status in runs:

        def begins(archive: JobArchive, new: NewAttempt, hour: int = hour) -> object:
            return begin(archive, new.model_copy(update={"started_at": at(hour)}))

        monkeypatch.setattr(JobArchive, "begin_attempt", begins)
        last = write_run(job, run, range(1, 3), None, chat(random.Random(1), 50))
        ended = at(hour, 30)
        job.archive.write_end(NewEnd(run=run, turn=2, parent=last, status=status, ended_at=ended))
    return job.archive


def test_a_run_that_began_later_is_the_newest_whatever_its_clock_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its start names the runs before: else a job that succeeded would count as failed, and be paid
    for again.
    """
    job = written(monkeypatch, ("one", 12, "failed"), ("two", 9, "failed"), ("a", 11, "succeeded"))
    assert job.runs() == job.runs_that_called() == ["one", "two", "a"]
    assert job.last_start() == at(12)
    told = standing_of(job)
    assert (told.run, told.status) == ("a", "succeeded")
    assert damage(examine_job(job).findings) == []


def test_time_tells_where_starts_do_not() -> None:
    """Of runs of releases that named none, and of those whose starts are gone."""
    times = {"a": at(3), "b": at(1), "c": "", "d": at(2)}
    assert oldest_first(times, {}) == [("", "c"), (at(1), "b"), (at(2), "d"), (at(3), "a")]
    assert [run for _, run in oldest_first(times, {"b": {"a", "gone"}})] == ["c", "d", "a", "b"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([at(h) for h in range(4)])),
    st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdefg"))),
)
def test_every_run_is_told_once_and_times_never_go_back(
    times: dict[str, str], named: dict[str, set[str]]
) -> None:
    """Also where runs name each other, as somebody may have made them: then in some order."""
    named = {run: others for run, others in named.items() if run in times}
    told = oldest_first(times, named)
    assert sorted(run for _, run in told) == sorted(times)
    place = {run: number for number, (_, run) in enumerate(told)}
    if all(run > other for run, others in named.items() for other in others):
        assert [when for when, _ in told] == sorted(when for when, _ in told)
        assert all(
            place[other] < place[run]
            for run, others in named.items()
            for other in others & times.keys()
        )
