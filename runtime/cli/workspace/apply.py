"""``holdfast workspace apply``: what a job changed, onto the user's own directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import HoldfastError, InputError
from runtime.base.plurals import counted
from runtime.base.visible import escaped
from runtime.cli.chosen import Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say
from runtime.cli.workspace.chosen import At, JobAtVersion, chosen_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.workspace.git.merging import Planned


def command(
    job: JobAtVersion,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="The directory. Default: the one that the job's workspace was copied from.",
            show_default=False,
        ),
    ] = None,
    conflicts: Annotated[
        bool,
        typer.Option(
            "--conflicts",
            help="Where both changed the same lines, write both between markers, as git does.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Bring what a job changed to the directory that it began from, or another.

    Three-way: what changed there since the job began stays. It shows what will change and asks
    first. Where both changed the same lines it refuses, and nothing is written, unless --conflicts
    is given. What is in a .git is left alone.
    """
    at = chosen_version(job, run, store)
    root, planned = _planned(at, to)
    if not json:
        _tell(at, root, planned)
    refused = [one for one in planned if one.fate == "conflict"]
    marked = [one for one in refused if conflicts and one.has_markers]
    writes = [*(one for one in planned if one.fate in {"take", "merge"}), *marked]
    if refused and not conflicts and not dry_run:
        raise _conflict(root, len(refused))
    done = not dry_run and bool(writes) and _asked(root, len(writes), yes)
    if done:
        _write(root, writes)
    if json:
        json_document({**_document(at, root, planned), "applied": done})
    elif done:
        say(f"{counted(len(writes), 'path')} written in {root}")
    if refused:
        raise typer.Exit(1)


def _planned(at: At, to: Path | None) -> tuple[Path, tuple[Planned, ...]]:
    """The directory, by default the one that the job's definition names, and what is to become of
    it.
    """
    definition = at.of.archive.definition() or {}
    root = to or _origin(definition)
    return root, plan(at, root, tuple((definition.get("writable") or {}).get("exclude", ())))


def _conflict(root: Path, count: int) -> HoldfastError:
    return HoldfastError(
        f"{counted(count, 'path')} changed in {root} where the job changed too: nothing was"
        " written; --conflicts writes what can be written, with both between markers"
    )


def plan(at: At, root: Path, exclude: tuple[str, ...]) -> tuple[Planned, ...]:
    """What is to become of each path that the job changed.

    Raises:
        InputError: if the directory is not there, or cannot be read.
    """
    from runtime.trees.entries import shown
    from runtime.workspace.checkouts.excluded import excluded
    from runtime.workspace.checkouts.taking import Digests, read_file, take
    from runtime.workspace.git.merging import Merge
    from runtime.workspace.git.objects import OWN_NAME
    from runtime.workspace.git.repository import repositories_in, repository_of

    trees = at.of.trees
    if not root.is_dir():
        # To one that is not there only a part of the files would go: all of them are exported.
        why = "is no directory" if root.exists() else "is not there: 'workspace export' makes it"
        raise InputError(f"{escaped(str(root))} {why}")
    try:
        user = take(root, excluded((*exclude, OWN_NAME)), Digests())
        merge = Merge(
            trees,
            trees.tree(at.of.history.base),
            trees.tree(at.version),
            lambda path: read_file(root / path),
            user.left,
        )
        planned = merge.plan(user.tree)
    except OSError as error:
        raise InputError(f"{escaped(str(error.filename or root))}: {error.strerror}") from error
    for path in repositories_in(one.path for one in planned):
        note(f"{escaped(shown(path))} is left alone: git runs what is set there")
    return tuple(one for one in planned if repository_of(one.path) is None)


def _origin(definition: dict[str, Any]) -> Path:
    place = str(definition.get("workspace") or "")
    if not place or "://" in place:
        raise InputError(
            "the job's workspace was copied from no directory of this machine: name one with --to"
        )
    if not Path(place).is_dir():
        raise InputError(f"{place}, which the job began from, is not there: name one with --to")
    return Path(place)


def _tell(at: At, root: Path, planned: Sequence[Planned]) -> None:
    from runtime.trees.entries import shown

    say(f"{at.of.name}@{at.turn} onto {root}")
    for one in planned:
        letter = {"conflict": "C", "kept": "-"}.get(one.fate, one.letter)
        why = one.why or ("merged with your changes" if one.fate == "merge" else "")
        say(f"{letter} {escaped(shown(one.path))}" + (f"  ({why})" if why else ""))
    if not planned:
        say("nothing to change: it has all of it")


def _document(at: At, root: Path, planned: Sequence[Planned]) -> dict[str, Any]:
    from runtime.trees.entries import shown

    about = {"job": at.of.name, "run": at.of.run, "turn": at.turn, "version": at.version}
    rows = [
        {"path": shown(one.path), "status": one.letter, "fate": one.fate, "why": one.why}
        for one in planned
    ]
    return {**about, "directory": str(root), "paths": rows}


def _asked(root: Path, count: int, yes: bool) -> bool:
    """Whether the user wants it."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(
            "there is no terminal to ask on: --yes applies it, --dry-run only shows it"
        )
    # On stderr: stdout may be a program's.
    return typer.confirm(f"Change {counted(count, 'path')} in {root}?", err=True)


def _write(root: Path, planned: Sequence[Planned]) -> None:
    from runtime.workspace.checkouts.applying import Put, put_all

    try:
        put_all(root, [Put(one.path, one.was, one.entry, one.data) for one in planned])
    except OSError as error:
        raise HoldfastError(f"{escaped(str(error.filename or root))}: {error.strerror}") from error
