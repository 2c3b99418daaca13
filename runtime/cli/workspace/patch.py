"""``holdfast workspace patch``: what a job changed, for ``git apply``."""

from __future__ import annotations

from runtime.cli.chosen import Run
from runtime.cli.options import Store
from runtime.cli.output import note, raw
from runtime.cli.workspace.chosen import JobBetween, chosen_between


def command(job: JobBetween, run: Run = None, store: Store = None) -> None:
    """Print what a job changed as a patch that 'git apply' takes, binary files too.

    What no patch can carry (empty directories, modes but for "executable", what is in a .git) is
    told on stderr.
    """
    from runtime.workspace.git.differences import differences

    between = chosen_between(job, run, store)
    found = differences(between.of.trees, between.before, between.after, binary=True)
    raw(found.patch)
    for line in found.untold:
        note(f"not in the patch: {line}")
