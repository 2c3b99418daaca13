"""``holdfast workspace patch``: what a job changed, for ``git apply``."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError, NotFound
from runtime.base.plurals import counted
from runtime.base.visible import escaped
from runtime.cli.chosen import Run
from runtime.cli.options import Store
from runtime.cli.output import note, raw
from runtime.cli.workspace.chosen import JobBetween, chosen_between


def command(
    job: JobBetween,
    run: Run = None,
    handed: Annotated[
        bool,
        typer.Option(
            "--handed",
            help="The one that JOB handed over with its result, exactly, secrets masked.",
        ),
    ] = False,
    store: Store = None,
) -> None:
    """Print what a job changed as a patch that 'git apply' takes, binary files too.

    What no patch can carry (empty directories, modes but for "executable", what is in a .git) is
    told on stderr.
    """
    if handed:
        _handed(job, run, store)
        return
    from runtime.workspace.git.differences import differences

    between = chosen_between(job, run, store)
    diff = differences(between.of.trees, between.before, between.after, binary=True)
    raw(diff.patch)
    for line in diff.untold:
        note(f"not in the patch: {escaped(line)}")


def _handed(job: str, run: str | None, store: str | None) -> None:
    """The patch that the end of a run names."""
    from runtime.archive.handed import handed_patch
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import chosen_run
    from runtime.cli.stores import archive_to_read

    if "@" in job:
        raise InputError("--handed is of the whole job: expected JOB without '@N'")
    objects = archive_to_read(store)
    archive = JobArchive.of(objects, job_to_read(objects, job))
    end = archive.end(chosen_run(archive, job, run))
    if end is None or end.patch is None:
        raise NotFound(f"{job} handed over no patch: it did not end by finish(..., patch=True)")
    raw(handed_patch(archive, end))
    if end.patch.masked:
        note(f"{counted(end.patch.masked, 'value')} masked: it does not apply there")
    for line in end.patch.untold:
        note(f"not in the patch: {escaped(line)}")
