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
