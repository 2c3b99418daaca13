"""Inspect's log of jobs that ended where no call was made: it has what was called before."""

from __future__ import annotations

import json
import random
from typing import Any

from archive_jobs import Written, chat, write_run

from runtime.archive.forms import NewEnd
from runtime.archive.inspect_log import inspect_log
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.values import JobKey


def logged(written: Written) -> dict[str, Any]:
    """The only sample."""
    archive = written.archive
    (sample,) = json.loads("".join(inspect_log(archive.store, [archive.job])))["samples"]
    return dict(sample)


def three_turns() -> Written:
    """A job of three turns, whose end is not told yet."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    written.archive.write_definition({"goal": "g"})
    write_run(written, "a", range(1, 4), None, chat(random.Random(1), 100))
    return written


def test_a_run_that_ended_before_its_first_call_has_those_before_it() -> None:
    """As one of a replay whose budget was used up where it began."""
    written = three_turns()
    written.archive.write_end(
        NewEnd(run="a", turn=3, parent=written.refs["a", 3], status="succeeded")
    )
    written.archive.write_end(
        NewEnd(
            run="b",
            turn=2,
            parent=written.refs["a", 2],
            status="budget",
            ended_at="2030-01-01T00:00:00Z",
        )
    )
    sample = logged(written)
    assert (sample["metadata"]["run"], sample["metadata"]["status"]) == ("b", "budget")
    assert sample["messages"][0]["content"] == written.layouts["a", 2][0].text


def test_what_of_a_job_cannot_be_read_is_told_with_its_sample() -> None:
    """The prompt of its last turn, and a reply; of a job that is whole nothing is."""
    written = three_turns()
    written.archive.write_end(
        NewEnd(run="a", turn=3, parent=written.refs["a", 3], status="succeeded")
    )
    assert "damaged" not in logged(written)["metadata"]
    attempt, step = (f"b/j/turns/a/00000/000000{end}" for end in ("3.attempt-001", "2.step"))
    # Another store: who wrote an archive remembers what it wrote.
    store, job = MemoryStore(), written.archive.job
    for key in written.archive.store.list(""):
        if key not in {attempt, step}:
            store.put_if_absent(key, written.archive.store.get(key))
    gaps: dict[JobKey, list[str]] = {}
    (sample,) = json.loads("".join(inspect_log(store, [job], gaps)))["samples"]
    assert sample["metadata"]["damaged"] == gaps[job]
    assert gaps[job][0] == f"{step} is not there"
    assert any(attempt in one for one in gaps[job][1:])
    assert len(sample["messages"]) == 1


def test_a_turn_that_never_began_has_no_prompt() -> None:
    """A job that is cancelled between two turns ends at the one that it was to take."""
    written = three_turns()
    written.archive.write_end(
        NewEnd(run="a", turn=4, parent=written.refs["a", 3], status="cancelled")
    )
    sample = logged(written)
    assert [one["content"] for one in sample["messages"][:-1]] == [
        segment.text for segment in written.layouts["a", 3]
    ]
