"""What the activities of sub-jobs take and return. Import-light, as ``contracts`` is."""

from __future__ import annotations

from typing import Any

from activities.contracts import Contract, Worked
from activities.record import EffectName
from runtime.base.values import JobKey
from runtime.context.sub_job_end import SubJobEnd


class SpawnOrder(Contract):
    """Start the sub-job ``child``, or find it.

    ``order`` is its workflow's, which goes by the task queue ``queue``. ``refused``: why none may
    be started. ``effect`` numbers the statement's effects from 0; ``recorded`` answers without
    starting anything.
    """

    key: JobKey
    turn: int
    effect: int
    child: JobKey
    queue: str
    order: dict[str, Any]
    refused: str = ""
    recorded: EffectName | None = None


class Spawned(Worked):
    """The sub-job ``job`` of ``parent`` (both ``BATCH/JOB``), and its end if it has ended before;
    or the exception that the call raises. ``earlier``: a run before this one may have started it.
    """

    job: str = ""
    parent: str = ""
    ended: SubJobEnd | None = None
    earlier: bool = False
    error_type: str | None = None
    error_message: str = ""


class OpenSubJobs(Contract):
    """Sub-jobs of whose ends their job does not know."""

    jobs: tuple[JobKey, ...]


class SubJobEnds(Worked):
    """How they ended."""

    ends: tuple[SubJobEnd, ...]
