"""How Temporal knows Holdfast's workflows: their types and ids, and what each starts with."""

from __future__ import annotations

from datetime import timedelta

from runtime.base.values import JobKey

JOB_WORKFLOW, BATCH_WORKFLOW = "JobWorkflow", "BatchWorkflow"

WORKFLOW_TYPES = frozenset({JOB_WORKFLOW, BATCH_WORKFLOW})
"""Holdfast's workflows, by their names; a worker may have others too."""

OPEN_JOBS = f"WorkflowType = '{JOB_WORKFLOW}' AND ExecutionStatus = 'Running'"
OPEN_BATCHES = f"WorkflowType = '{BATCH_WORKFLOW}' AND ExecutionStatus = 'Running'"
"""What the server is asked for those that run."""


def open_on(task_queue: str) -> str:
    """The question for those that run on a task queue: a batch, its jobs, or both."""
    return f"TaskQueue = '{task_queue}' AND ExecutionStatus = 'Running'"


TASK_LIMIT = timedelta(seconds=60)
"""How long a workflow task may take: a worker that has a job not in memory replays its run within
one.
"""

LONGEST_ID = 1_000
"""The most bytes that a workflow's id has at a server: a command that names a longer one fails its
workflow task, each time anew.
"""

END = "end"
"""The id of the activity that archives the end of a job's run."""

_SUMMARY_CHARS = 160


def summary_of(goal: str) -> str:
    """What stands beside a job in Temporal's own UI."""
    return goal[:_SUMMARY_CHARS]


def job_workflow_id(key: JobKey) -> str:
    """The workflow id of a job."""
    return f"holdfast/{key.batch}/{key.job}"


def is_nameable(key: JobKey) -> bool:
    """Whether a command may name the job's workflow."""
    return len(job_workflow_id(key).encode()) <= LONGEST_ID


def job_key(workflow_id: str) -> JobKey | None:
    """The name of the job with that workflow id, None if it is no job's."""
    match workflow_id.split("/"):
        case ["holdfast", batch, job]:
            return JobKey(batch=batch, job=job)
        case _:
            return None


def batch_workflow_id(batch: str) -> str:
    """The workflow id of a batch."""
    return f"holdfast/{batch}"


def approval_activity_id(turn: int, effect: int) -> str:
    """The id of the activity by which a turn's statement asks whether an effect may be made."""
    return f"turn-{turn}-approval-{effect}"


def effect_activity_id(turn: int, effect: int) -> str:
    """The id of the activity by which an effect of a turn's statement is made."""
    return f"turn-{turn}-effect-{effect}"
