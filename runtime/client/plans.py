"""What one ``holdfast run`` does with each job of its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass, field
from enum import StrEnum

from runtime.base.spec.models import BatchSpec, Retry
from runtime.job.stops import JobStatus
from workflows.messages import JobOutcome

ASKED_EACH = 200
"""Of so many jobs the server is asked one by one; of more, which of them it knows."""

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
    OPEN = "open"
    """The archive has it open, and Temporal was not asked: it is resumed, or lost."""
    RERUN = "rerun"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job of the command: what is done with it, the turns it has had, and its outcome if it has
    ended.

    ``before`` is the run that a rerun follows, or one that was taken back and has no call since,
    whose end is not this command's; or the archived run of a lost job. ``first`` is the first run
    of its chain, where Temporal knows it: continuing as new and resets begin others.
    """

    id: str
    start: Start
    turn: int = 0
    outcome: JobOutcome | None = None
    before: str = ""
    first: str = ""


@dataclass(frozen=True)
class Plan:
    """What the command will do with the jobs of ``spec``.

    Of jobs that are simply new, which may be many, it has the names alone: their definitions stay
    where ``spec`` has them.
    """

    spec: BatchSpec
    ids: tuple[str, ...]
    """The jobs, in the file's order."""
    known: Mapping[str, JobPlan] = field(default_factory=dict)
    """What is done with those of which something is known, by their ids."""
    tries: Mapping[str, Retry] = field(default_factory=dict)
    """Of which failures jobs are started again, by their ids: of those that ever are."""
    queues: bool = False
    """Whether a tool has a queue of its own."""

    @property
    def batch(self) -> str:
        """The batch's name."""
        return self.spec.batch

    def of(self, id: str) -> JobPlan:
        """What is done with a job."""
        return self.known.get(id) or JobPlan(id, Start.NEW)

    @property
    def jobs(self) -> Iterator[JobPlan]:
        """What is done with each job, in the file's order."""
        return map(self.of, self.ids)

    def counted(self, *starts: Start) -> tuple[JobPlan, ...]:
        """The jobs of which something is known with which one of ``starts`` is done."""
        return tuple(job for job in self.known.values() if job.start in starts)

    @property
    def new(self) -> int:
        """How many jobs are begun."""
        return len(self.ids) - len(self.known) + len(self.counted(Start.NEW))

    @property
    def ended(self) -> dict[str, JobOutcome]:
        """How the jobs ended that have."""
        return {id: job.outcome for id, job in self.known.items() if job.outcome is not None}

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
        for jobs, words in (
            (len(self.counted(Start.LOST)), "lost"),
            (len(self.counted(Start.OPEN)), "open"),
            (len(self.counted(Start.RERUN)), "started anew"),
            (self.new, "new"),
        ):
            if jobs:
                parts.append(f"{jobs} {words}")
        return ", ".join(parts) or "no jobs"


def is_large(jobs: Sized) -> bool:
    """Whether a batch has so many jobs that not each of them is asked for by itself."""
    return len(jobs) > ASKED_EACH


def _turns(turns: list[int]) -> str:
    """``turn 4`` where all are the same, ``turns 4 and 11``, or ``turns 1 to 30`` where they are
    many.
    """
    if len(set(turns)) == 1:
        return f"turn {turns[0]}"
    if len(turns) > _LISTED:
        return f"turns {min(turns)} to {max(turns)}"
    return f"turns {', '.join(map(str, turns[:-1]))} and {turns[-1]}"
