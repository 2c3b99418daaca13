"""What one ``holdfast run`` does with each job of its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from runtime.base.spec.finish import OnFinish
from runtime.base.spec.models import BatchBudget, JobSpec, Limits
from runtime.job.stops import JobStatus
from workflows.messages import JobOutcome

_LISTED = 8
"""So many turns are named one by one."""


class Start(StrEnum):
    """What giving the command does with a job."""

    NEW = "new"
    """It has not begun; an earlier command may have submitted it."""
    RESUMED = "resumed"
    DONE = "done"
    LOST = "lost"
    """The archive has it open, and Temporal does not know it."""
    RERUN = "rerun"


@dataclass(frozen=True)
class JobPlan:
    """One job of the command: what is done with it, the turns it has had, and its outcome if it has
    ended.

    ``before`` is the run that a rerun follows, whose end is not this command's, or the archived run
    of a lost job. ``first`` is the first run of its chain, where Temporal knows it: continuing as
    new and resets begin others.
    """

    spec: JobSpec
    start: Start
    turn: int = 0
    outcome: JobOutcome | None = None
    before: str = ""
    first: str = ""


@dataclass(frozen=True)
class Plan:
    """What the command will do."""

    batch: str
    concurrency: int
    jobs: tuple[JobPlan, ...]
    budget: BatchBudget | None = None
    """What the jobs may spend together."""
    limits: Limits = field(default_factory=Limits)
    """How fast models and tools may be called."""
    priority: int | None = None
    """How early its limited calls come among others'."""
    on_finish: OnFinish | None = None

    def counted(self, *starts: Start) -> tuple[JobPlan, ...]:
        """The jobs with which one of ``starts`` is done."""
        return tuple(job for job in self.jobs if job.start in starts)

    @property
    def failed(self) -> tuple[JobPlan, ...]:
        """The jobs that ended without success and are left so."""
        return tuple(
            job
            for job in self.counted(Start.DONE)
            if job.outcome and job.outcome.status is not JobStatus.SUCCEEDED
        )

    def sentence(self) -> str:
        """``1 done, 2 resumed at turns 4 and 11, 3 new``."""
        parts: list[str] = []
        failed = len(self.failed)
        if done := len(self.counted(Start.DONE)) - failed:
            parts.append(f"{done} done")
        if failed:
            parts.append(f"{failed} ended without success")
        if resumed := self.counted(Start.RESUMED):
            parts.append(f"{len(resumed)} resumed at {_turns([job.turn for job in resumed])}")
        for start, words in (
            (Start.LOST, "lost"),
            (Start.RERUN, "started anew"),
            (Start.NEW, "new"),
        ):
            if jobs := self.counted(start):
                parts.append(f"{len(jobs)} {words}")
        return ", ".join(parts) or "no jobs"


def _turns(turns: list[int]) -> str:
    """``turn 4``, ``turns 4 and 11``, or ``turns 1 to 30`` where they are many."""
    if len(turns) == 1:
        return f"turn {turns[0]}"
    if len(turns) > _LISTED:
        return f"turns {min(turns)} to {max(turns)}"
    return f"turns {', '.join(map(str, turns[:-1]))} and {turns[-1]}"
