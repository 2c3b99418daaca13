"""``holdfast workspace export``: a version as a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.base.plurals import counted
from runtime.cli.chosen import Run
from runtime.cli.options import Store
from runtime.cli.output import say
from runtime.cli.workspace.chosen import At, JobAtVersion, chosen_version


def command(
    job: JobAtVersion,
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Where to; empty, or not there yet.", show_default=False
        ),
    ],
    run: Run = None,
    store: Store = None,
) -> None:
    """Write the files of a job's workspace, as they were after a turn, to a directory.

    Their times are made up: the first of January 2020, and a second more for each version after the
    first.
    """
    at = chosen_version(job, run, store)
    check_empty(directory)
    lay_out(at, directory)
    tree = at.of.trees.tree(at.version)
    say(
        f"{at.of.name}@{at.turn}: {counted(tree.count, 'file')}, {tree.size:,} bytes in {directory}"
    )


def check_empty(directory: Path) -> None:
    """See that nothing would be lost there.

    Raises:
        InputError: if it is no directory, or something is in it.
    """
    try:
        with os.scandir(directory) as found:
            if next(found, None) is not None:
                raise InputError(
                    f"{directory} is not empty: name a directory that is not there yet"
                )
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}") from error


def lay_out(at: At, directory: Path) -> None:
    """Write a version's files.

    Raises:
        InputError: if the host refuses.
    """
    from runtime.checkouts.laying import lay, write_file
    from runtime.trees.tree import Tree

    trees = at.of.trees
    tree = trees.tree(at.version)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lay(
            directory,
            Tree().difference(tree),
            tree,
            lambda place, entry: write_file(place, entry, trees.content(entry)),
        )
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror}") from error
