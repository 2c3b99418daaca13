"""``holdfast workspace ls``: the files of a version."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import NotFound
from runtime.base.plurals import counted
from runtime.base.visible import escaped
from runtime.cli.chosen import Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, say
from runtime.cli.workspace.chosen import JobAtVersion, chosen_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.trees.entries import Entry
    from runtime.trees.tree import Tree


def command(
    job: JobAtVersion,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A directory or file: only what is there.", show_default=False
        ),
    ] = "",
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """List the files of a job's workspace, as they were after a turn."""
    from runtime.trees.entries import shown

    at = chosen_version(job, run, store)
    tree = at.of.trees.tree(at.version)
    entries = list(_listed(tree, path.strip("/")))
    if json:
        about = {"job": at.of.name, "run": at.of.run, "turn": at.turn, "version": at.version}
        json_document({**about, "entries": [row(place, entry) for place, entry in entries]})
        return
    say(f"{at.of.name}@{at.turn}  {at.version}")
    for place, entry in entries:
        target = f" -> {shown(entry.content)}" if entry.kind == "l" else ""
        say(f"{_mode(entry)}  {entry.size:>12,}  {escaped(shown(place) + target)}")
    files = [entry for _, entry in entries if entry.is_file]
    say(f"{counted(len(files), 'file')}, {sum(entry.size for entry in files):,} bytes")


def row(path: str, entry: Entry) -> dict[str, Any]:
    """An entry for programs; a path that is no UTF-8 has escapes."""
    from runtime.trees.entries import shown

    kinds = {"f": "file", "l": "link", "d": "directory"}
    return {
        "path": shown(path),
        "kind": kinds[entry.kind],
        "mode": f"{entry.mode:o}",
        "size": entry.size,
        "digest": entry.content if entry.is_file else None,
        "target": shown(entry.content) if entry.kind == "l" else None,
    }


def _listed(tree: Tree, path: str) -> Iterator[tuple[str, Entry]]:
    """What is at and beneath a path; of directories only those that are empty."""
    entry = tree.get(path)
    if entry is None:
        raise NotFound(f"the version has no {path!r}")
    if path and (entry.kind != "d" or not tree.names(path)):
        yield path, entry
    for place, inner in tree.under(path):
        if inner.kind != "d" or not tree.names(place):
            yield place, inner


def _mode(entry: Entry) -> str:
    kinds = {"f": stat.S_IFREG, "l": stat.S_IFLNK, "d": stat.S_IFDIR}
    return stat.filemode(kinds[entry.kind] | entry.mode)
