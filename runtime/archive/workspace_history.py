"""What became of a job's workspace, statement by statement, as its archive has it."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound


@dataclass(frozen=True)
class WorkspaceTurn:
    """A turn whose statement has ended: its step, and the versions before and after."""

    step: Step
    before: str
    after: str

    @property
    def turn(self) -> int:
        """The turn's number."""
        return self.step.turn


@dataclass(frozen=True)
class WorkspaceHistory:
    """The versions of a workspace in one run: that which the job began with, and each turn's."""

    name: str
    base: str
    turns: tuple[WorkspaceTurn, ...]

    @property
    def last(self) -> int:
        """The last turn whose version is known; 0 if none is."""
        return self.turns[-1].turn if self.turns else 0

    def after(self, turn: int | None) -> str:
        """The version after a turn; 0 is before the first, None the last.

        Raises:
            NotFound: if it is not known.
        """
        if turn == 0 or not self.turns:
            version = self.base if not turn else ""
        elif turn is None:
            version = self.turns[-1].after
        else:
            version = next((one.after for one in self.turns if one.turn == turn), "")
        if not version:
            raise NotFound(
                f"{self.name} has no version of its workspace after turn {turn}: it has those of"
                f" turns 0 (before the first) to {self.last}"
            )
        return version


def workspace_history(archive: JobArchive, run: str) -> WorkspaceHistory:
    """The versions of a run's workspace.

    Raises:
        NotFound: if the job has no workspace of its own.
    """
    steps, end = list(archive.steps(run)), archive.end(run)
    if not steps or not steps[0].workspace:
        raise NotFound(
            f"{archive.job} has no workspace of its own: its 'workspace' has no 'write: true'"
            if steps
            else f"{archive.job} has no turn in run {run}"
        )
    # A step names the version at its call, so the one after its statement is the next step's.
    afters = [step.workspace for step in steps[1:]]
    # An end that follows another step says nothing of this statement.
    if end is not None and end.parent == steps[-1].ref:
        afters.append(end.workspace)
    turns = tuple(
        WorkspaceTurn(step, step.workspace, after)
        for step, after in zip(steps, afters, strict=False)
        if after
    )
    return WorkspaceHistory(str(archive.job), steps[0].workspace, turns)
