"""``holdfast workspace diff``: what changed between two versions."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.visible import escaped
from runtime.cli.chosen import Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, raw, say
from runtime.cli.workspace.chosen import JobBetween, chosen_between

if TYPE_CHECKING:
    from runtime.workspace.git.differences import Differences, FileChange


def command(
    job: JobBetween,
    stat: Annotated[
        bool, typer.Option("--stat", help="Only which files changed, and by how many lines.")
    ] = False,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show what a job changed in its workspace, as a unified diff.

    By default all of it; '@A' is what one statement changed. What git has no words for (empty
    directories, modes but for "executable") comes last, a line each. To apply it elsewhere, take
    'workspace patch', which has the bytes of binary files too.
    """
    from runtime.workspace.git.differences import differences

    between = chosen_between(job, run, store)
    columns = max(shutil.get_terminal_size().columns, 40)
    diff = differences(between.of.trees, between.before, between.after, width=columns)
    if json:
        about = {"job": between.of.name, "run": between.of.run}
        turns = {"first": between.first, "last": between.last}
        versions = {"before": between.before, "after": between.after}
        json_document({**about, **turns, **versions, **document(diff)})
        return
    if stat:
        say(diff.stat.rstrip("\n") if diff.files else "no file changed")
    else:
        raw(diff.patch)
    for line in diff.untold:
        say(escaped(line))


def document(diff: Differences) -> dict[str, Any]:
    """Differences for programs: a row for each file, and what git has no words for."""
    return {"files": [file_row(change) for change in diff.files], "other": list(diff.untold)}


def file_row(change: FileChange) -> dict[str, Any]:
    """A changed file; ``was`` is the path before, of one that was renamed."""
    from runtime.trees.entries import shown

    return {
        "status": change.letter,
        "path": shown(change.path),
        "was": shown(change.was) if change.letter == "R" else None,
        "binary": change.binary,
        "added": change.added,
        "deleted": change.deleted,
        "old_mode": None if change.old is None else f"{change.old.mode:o}",
        "new_mode": None if change.new is None else f"{change.new.mode:o}",
    }
