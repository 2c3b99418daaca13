"""What jobs left of their own workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.archive.job import JobArchive
from runtime.archive.trees import Trees
from runtime.archive.workspaces import opening_of
from runtime.base.values import Value
from runtime.trees.entries import Kind, shown
from runtime.trees.tree import Tree


class LeftWorkspace(Value):
    """The version that a run began with, the last one, how many paths differ, and the files of the
    last one that the job's ``keep`` names.
    """

    base: str
    version: str
    changed: int
    kept: tuple[str, ...] = ()


def left_by(archive: JobArchive, run: str) -> LeftWorkspace | None:
    """What a run that has ended left of its workspace; None for one that has none of its own."""
    end, opening = archive.end(run), opening_of(archive, run)
    if end is None or opening is None or not end.workspace:
        return None
    trees, base = Trees(archive.store), str(opening["version"])
    before, after = trees.tree(base), trees.tree(end.workspace)
    return LeftWorkspace(
        base=base,
        version=end.workspace,
        changed=len(before.difference(after)),
        kept=tuple(map(shown, kept_in(after, keep_of(archive.definition())))),
    )


def keep_of(definition: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The patterns of what a job hands over with its result."""
    return tuple(((definition or {}).get("writable") or {}).get("keep", ()))


def kept_in(tree: Tree, patterns: tuple[str, ...]) -> list[str]:
    """The files and links of a tree that patterns name, themselves or by a directory above."""
    if not patterns:
        return []
    from runtime.workspace.checkouts.excluded import excluded

    named = excluded(patterns)
    return [
        path
        for path, entry in tree.under()
        if entry.kind is not Kind.DIRECTORY and named.above(path)
    ]
