"""The variables of a job as they stood at a turn, from a checkpoint on and without one."""

from __future__ import annotations

from typing import Any

import pytest
from archive_jobs import Written, segment, step_record

from runtime.archive.checkpoints import write_checkpoint
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.variables import variables_at
from runtime.base.errors import NotFound
from runtime.base.values import StepRef

TURNS = 6


def stood(turn: int) -> dict[str, dict[str, Any]]:
    """What there is when the model is called at a turn: one that each statement changes, and one
    that the second made.
    """
    made = {} if turn < 3 else {"made": {"type": "int", "repr": "2"}}
    changed = {} if turn < 2 else {"d": {"type": "dict", "repr": f"{{'k': {turn - 1}}}"}}
    return {**changed, **made}


def told(turn: int) -> dict[str, dict[str, Any]]:
    """The same with where the statement before changed it."""
    variables = stood(turn)
    return variables if turn < 3 else {**variables, "d": {**variables["d"], "paths": ["d['k']"]}}


@pytest.mark.parametrize("saved", [(), (2,), (3, 4)])
def test_what_the_statement_before_changed_is_told_behind_a_checkpoint_too(
    saved: tuple[int, ...],
) -> None:
    """Whose state is that after the turn: of its statement the next step tells, with the places
    that it changed.
    """
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    parent: StepRef | None = None
    for turn in range(1, TURNS + 1):
        attempt = written.begin("a", turn, parent, [segment(f"turn {turn}", "event:1")])
        variables = stood(turn)
        diff: dict[str, Any] = {}
        if turn == 2:
            diff = {"added": {"d": variables["d"]}}
        elif turn > 2:
            diff = {"changed": {"d": {"after": variables["d"], "paths": ["d['k']"]}}}
        if turn == 3:
            diff["added"] = {"made": variables["made"]}
        record = step_record("a", turn, attempt)
        parent = written.finished(record.model_copy(update={"execution": {"state_diff": diff}}))
        if turn in saved:
            state = {"variables": stood(turn + 1)}
            write_checkpoint(
                written.archive, run="a", turn=turn, parent=parent, interpreter="m", state=state
            )
    assert [variables_at(written.archive, "a", turn) for turn in range(1, TURNS + 1)] == [
        told(turn) for turn in range(1, TURNS + 1)
    ]
    with pytest.raises(NotFound, match=f"turn {TURNS + 1} of run a has no step"):
        variables_at(written.archive, "a", TURNS + 1)
