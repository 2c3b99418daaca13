"""The variables of a job as they stood at a turn: a checkpoint's, and what each statement after it
made of them.
"""

from __future__ import annotations

from typing import Any

from runtime.archive.checkpoints import checkpoint_before
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound


def variables_at(archive: JobArchive, run: str, turn: int) -> dict[str, dict[str, Any]]:
    """What the variables were when the model was called at ``turn``, by their names.

    ``paths`` are the places that the statement before changed in those that it did not make anew.

    Raises:
        NotFound: if the run has no such turn.
    """
    saved = checkpoint_before(archive, run, turn - 1)
    variables: dict[str, dict[str, Any]] = (
        dict(saved.state["variables"]) if saved is not None else {}
    )
    # The step behind a checkpoint tells of the statement that the checkpoint has already.
    first = saved.turn + 2 if saved is not None else 1
    for number in range(min(first, turn), turn + 1):
        step = archive.find_step(run, number)
        if step is None:
            raise NotFound(f"turn {number} of run {run} has no step in the archive")
        diff = (step.execution or {}).get("state_diff", {})
        changed = diff.get("changed", {})
        if number >= first:
            for name in diff.get("deleted", ()):
                variables.pop(name, None)
            variables |= diff.get("added", {})
            variables |= {name: change["after"] for name, change in changed.items()}
        if number == turn:
            variables |= {
                name: {**change["after"], "paths": change.get("paths", [name])}
                for name, change in changed.items()
            }
    return variables
