"""Where two timelines part: by what was said and done, not by ids that count what was before."""

from __future__ import annotations

import random
from typing import Any

from archive_jobs import Written, chat, step_record

from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.timelines import Turn, differing, parting, timeline_of

DONE = {"status": "ok", "namespace_digest": "sha256:aa", "stdout": "2\n", "events": ["1.2", "1.3"]}


def timeline(run: str, **done: Any) -> dict[int, Turn]:
    """Two turns, of which the statement of the first did so."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    archive, layout_at, parent = written.archive, chat(random.Random(1), 100), None
    for turn in (1, 2):
        layout = layout_at(turn, archive.layout(parent), archive.reply_segment(parent))
        record = step_record(run, turn, written.begin(run, turn, parent, layout))
        execution = {**DONE, **done} if turn == 2 else None
        parent = written.finished(record.model_copy(update={"execution": execution}))
    return timeline_of(archive, run)[0]


def test_ids_and_times_are_no_other_outcome() -> None:
    """A message before a statement moves the ids of the events after it."""
    other = timeline("b", events=["1.3", "1.4"], execution_id="1.9", ended_at="later")
    assert parting(timeline("a"), other).execution is None


def test_what_differs_is_named() -> None:
    """Also where neither the status nor a variable does."""
    first, other = timeline("a"), timeline("b", stdout="3\n")
    assert parting(first, other).execution == 1
    assert differing(first[1], other[1]) == ["stdout"]
