"""``holdfast workspace cat``: a file of a version."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.chosen import Run
from runtime.cli.options import Store
from runtime.cli.output import raw
from runtime.cli.workspace.chosen import JobAtVersion, chosen_version


def command(
    job: JobAtVersion,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A file of the workspace.", show_default=False)
    ],
    run: Run = None,
    store: Store = None,
) -> None:
    """Print a file of a job's workspace, byte for byte, as it was after a turn.

    Links within the workspace are followed.
    """
    at = chosen_version(job, run, store)
    tree = at.of.trees.tree(at.version)
    _, entry = at.entry(tree, path)
    if not entry.is_file:
        raise InputError(f"{at.of.name}@{at.turn}: {path} is a directory: 'workspace ls' lists it")
    raw(at.of.trees.content(entry))
