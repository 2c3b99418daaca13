"""The versions that a command is about, from ``JOB@A..B`` as it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.completion import job_names

if TYPE_CHECKING:
    from runtime.archive.job import JobArchive
    from runtime.archive.trees import Trees
    from runtime.archive.workspace_history import WorkspaceHistory
    from runtime.trees.entries import Entry
    from runtime.trees.tree import Tree

JobAtVersion = Annotated[
    str,
    typer.Argument(
        metavar="JOB[@N]",
        help=(
            "A job (BATCH/ID, a unique prefix of the id, or 'last') and a turn: its files after"
            " that turn's statement; 0 is before the first. Without '@N', its newest files."
        ),
        show_default=False,
        autocompletion=job_names,
    ),
]
JobBetween = Annotated[
    str,
    typer.Argument(
        metavar="JOB[@A[..B]]",
        help=(
            "A job: from what it began with to its newest files. '@A..B': from those after turn A"
            " to those after turn B; either may be left out. '@A': what turn A's statement changed."
        ),
        show_default=False,
        autocompletion=job_names,
    ),
]

_BETWEEN = re.compile(r"(?P<first>\d{0,9})(?P<dots>\.\.)?(?P<last>\d{0,9})", re.ASCII)


@dataclass(frozen=True)
class Held:
    """A run's workspace: where its archive is, its history, and the trees."""

    archive: JobArchive
    run: str
    history: WorkspaceHistory
    trees: Trees

    @property
    def name(self) -> str:
        """``BATCH/JOB``."""
        return self.history.name


def held(job: str, run: str | None, store: str | None) -> Held:
    """The workspace of the job that the user named.

    Raises:
        NotFound: if there is no such job or run, or it has no workspace of its own.
    """
    from runtime.archive.job import JobArchive
    from runtime.archive.trees import Trees
    from runtime.archive.workspace_history import workspace_history
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import chosen_run
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    name = job_to_read(objects, job)
    archive = JobArchive.of(objects, name)
    chosen = chosen_run(archive, str(name), run)
    return Held(archive, chosen, workspace_history(archive, chosen), Trees(objects))


@dataclass(frozen=True)
class At:
    """One version of a workspace, after a turn."""

    of: Held
    turn: int
    version: str

    def entry(self, tree: Tree, path: str) -> tuple[str, Entry]:
        """The place that ``path`` names in this version's ``tree``, and what is there.

        Raises:
            NotFound: if nothing is there, or it leads out of the workspace.
        """
        from runtime.trees.places import entry_at

        try:
            return entry_at(tree, path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise NotFound(f"{self.of.name}@{self.turn}: {path or repr(path)}: {why}") from error


def chosen_version(text: str, run: str | None, store: str | None) -> At:
    """The version that ``JOB@N`` names.

    Raises:
        InputError: if it is no JOB@N.
        NotFound: if there is no such version.
    """
    from runtime.cli.job_turn import parse_job_turn

    wanted = parse_job_turn(text)
    of = held(wanted.job, run, store)
    turn = of.history.last if wanted.turn is None else wanted.turn
    return At(of, turn, of.history.after(turn))


@dataclass(frozen=True)
class Between:
    """Two versions of a workspace: after turn ``first``, and after turn ``last``."""

    of: Held
    first: int
    last: int

    @property
    def before(self) -> str:
        """The version that it goes from."""
        return self.of.history.after(self.first)

    @property
    def after(self) -> str:
        """The version that it leads to."""
        return self.of.history.after(self.last)


def chosen_between(text: str, run: str | None, store: str | None) -> Between:
    """The versions that ``JOB[@A[..B]]`` names.

    Raises:
        InputError: if it is none.
        NotFound: if there are no such versions.
    """
    job, at, turns = text.rpartition("@")
    if not at:
        job, turns = text, ".."
    match = _BETWEEN.fullmatch(turns)
    if not job or match is None or not turns:
        raise InputError(
            f"{text!r} is no JOB[@A[..B]]: a job's name, '@' and turns, as in 'nightly/fix@12' or"
            " 'nightly/fix@3..12'"
        )
    of = held(job, run, store)
    first, last = (int(match[name]) if match[name] else None for name in ("first", "last"))
    if not match["dots"] and first is not None:
        if first == 0:
            raise InputError(f"{text}: no statement is before turn 1; '@0..N' is from the start")
        between = Between(of, first - 1, first)
    else:
        between = Between(of, first or 0, of.history.last if last is None else last)
    if between.first > between.last:
        raise InputError(f"{text}: turn {between.first} is after turn {between.last}")
    # Raises where one is not there, before anything is printed.
    for turn in (between.first, between.last):
        of.history.after(turn)
    return between
