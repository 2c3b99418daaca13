"""What ``run`` tells of each job at its end, whether the job has ended or not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from runtime.archive.gaps import UNREADABLE
from runtime.archive.handed import told_patch
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.tombstones import tombstones_of
from runtime.archive.standings import ArchivedStanding, spent_below, standing_of
from runtime.archive.stores import ObjectStore
from runtime.base.plurals import counted
from runtime.base.standings import OPEN
from runtime.base.values import JobKey
from runtime.cli.output import note
from runtime.client.lost import archived_outcome
from runtime.client.plans import JobPlan, Plan
from runtime.job.stops import JobStatus
from runtime.workspace.left import left_by
from workflows.messages import JobOutcome, JobProgress

_NAMED = 8
"""So many jobs are named one by one."""


@dataclass
class Seen:
    """What was seen of the jobs, by their ids: how they ended, and how far those came that did
    not.
    """

    outcomes: dict[str, JobOutcome]
    progress: dict[str, JobProgress] = field(default_factory=dict)


def summary(store: ObjectStore, plan: Plan, seen: Seen, damaged: list[str]) -> list[dict[str, Any]]:
    """A document of each job of the plan; what was deleted is noted. ``damaged`` is told what of
    the ends cannot be read: such a job is told with what the server knows of it.
    """
    jobs: list[dict[str, Any]] = []
    deleted: list[str] = []
    below, unreadable = spent_below(store, plan.batch, {job.id for job in plan.jobs})
    if unreadable:
        note(
            f"what sub-jobs used is without {', '.join(map(str, unreadable))}, which cannot be"
            " read: run 'holdfast verify'"
        )
    for job in plan.jobs:
        archive = JobArchive.of(store, JobKey(batch=plan.batch, job=job.id))
        outcome, stands = seen.outcomes.get(job.id), None
        if outcome is None:
            stands = _of_this_command(standing_of(archive), job)
            outcome = _end_unseen(stands)
        end, left, patch = None, None, None
        if outcome is not None:
            try:
                end = archive.end(outcome.run)
                left = left_by(archive, outcome.run)
                patch = told_patch(archive, end)
            except UNREADABLE as error:
                damaged.append(str(error))
            else:
                deleted += _deleted(archive) if end is None else []
        jobs.append(
            {
                "job": f"{plan.batch}/{job.id}",
                "id": job.id,
                "status": outcome.status if outcome else OPEN,
                "reason": outcome.reason if outcome else "",
                "result": end.result if end else None,
                **(_used_by(outcome) if outcome else _used_so_far(stands, job, seen)),
                "sub_jobs": asdict(below[job.id]) if job.id in below else None,
                "workspace": left.model_dump(mode="json") if left else None,
                "patch": patch,
            }
        )
    for told in deleted[:_NAMED]:
        note(f"{told}. It is done all the same, and nothing is left of what came of it")
    if len(deleted) > _NAMED:
        note(f"and so are {counted(len(deleted) - _NAMED, 'other')}")
    return jobs


def _deleted(archive: JobArchive) -> list[str]:
    """By whom the records of a job were deleted, of which there is nothing any more; Temporal knows
    it for a while after that.
    """
    if any(archive.store.list(f"{archive.prefix}/")):
        return []
    return [
        f"{archive.job} {one.told}" for one in tombstones_of(archive.store, archive.prefix)[-1:]
    ]


def _of_this_command(standing: ArchivedStanding, job: JobPlan) -> ArchivedStanding | None:
    """None for a job that has not begun anew yet: what its run before used was told then."""
    return standing if standing.run != job.before else None


def _end_unseen(standing: ArchivedStanding | None) -> JobOutcome | None:
    """How a job ended after the command was interrupted, while calls in flight were waited for.

    What ended without success may begin again by itself (``retry:``), and is open.
    """
    if standing is None or standing.end is None or standing.status != JobStatus.SUCCEEDED:
        return None
    return archived_outcome(standing.key, standing.end)


def _used_by(outcome: JobOutcome) -> dict[str, Any]:
    return {
        "turns": outcome.turns,
        "tokens": outcome.usage.total,
        "cost_usd": outcome.cost_usd,
    }


def _used_so_far(standing: ArchivedStanding | None, job: JobPlan, seen: Seen) -> dict[str, Any]:
    """What an open job came to. The archive knows of the last moments, and what was seen last of
    the attempts of a turn that is not finished.
    """
    progress = seen.progress.get(job.id)
    turns, tokens, cost = job.turn, 0, 0.0
    if progress is not None:
        turns, tokens, cost = progress.turn, progress.usage.total, progress.cost_usd
    if standing is not None:
        turns, tokens = max(turns, standing.turns), max(tokens, standing.tokens)
        cost = max(cost, standing.cost_usd)
    return {"turns": turns, "tokens": tokens, "cost_usd": cost}
