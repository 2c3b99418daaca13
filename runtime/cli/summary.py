"""What ``run`` tells of each job at its end, whether the job has ended or not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from runtime.archive.handed import told_patch
from runtime.archive.job import JobArchive
from runtime.archive.standings import spent_below
from runtime.archive.stores import ObjectStore
from runtime.base.standings import OPEN
from runtime.base.values import JobKey
from runtime.cli.output import note
from runtime.client.plans import JobPlan, Plan
from runtime.workspace.left import left_by
from workflows.messages import JobOutcome, JobProgress


@dataclass
class Seen:
    """What was seen of the jobs, by their ids: how they ended, and how far those came that did
    not.
    """

    outcomes: dict[str, JobOutcome]
    progress: dict[str, JobProgress] = field(default_factory=dict)


def summary(store: ObjectStore, plan: Plan, seen: Seen) -> list[dict[str, Any]]:
    """A document of each job of the plan; what cannot be read is noted."""
    jobs: list[dict[str, Any]] = []
    below, unreadable = spent_below(store, plan.batch, {job.id for job in plan.jobs})
    if unreadable:
        note(
            f"what sub-jobs used is without {', '.join(map(str, unreadable))}, which cannot be"
            " read: run 'holdfast verify'"
        )
    for job in plan.jobs:
        outcome, progress = seen.outcomes.get(job.id), seen.progress.get(job.id)
        last = outcome or progress
        archive = JobArchive.of(store, JobKey(batch=plan.batch, job=job.id))
        end = archive.end(outcome.run) if outcome else None
        left = left_by(archive, outcome.run) if outcome else None
        jobs.append(
            {
                "job": f"{plan.batch}/{job.id}",
                "id": job.id,
                "status": outcome.status if outcome else OPEN,
                "reason": outcome.reason if outcome else "",
                "result": end.result if end else None,
                "turns": outcome.turns if outcome else _turns(archive, job, progress),
                "tokens": last.usage.total if last else 0,
                "cost_usd": last.cost_usd if last else 0.0,
                "sub_jobs": asdict(below[job.id]) if job.id in below else None,
                "workspace": left.model_dump(mode="json") if left else None,
                "patch": told_patch(archive, end),
            }
        )
    return jobs


def _turns(archive: JobArchive, job: JobPlan, progress: JobProgress | None) -> int:
    """The turns that an open job has come to: the archive knows of those of the last moments."""
    runs = archive.runs()
    archived = archive.last_turn(runs[-1]) if runs else 0
    return max(archived, progress.turn if progress else job.turn)
