"""What workflows take and return, and the names by which clients reach them.

Import-light: clients use it too.
"""

from __future__ import annotations

import uuid
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from activities.batch_contracts import Followed, PageRef
from activities.record import ReplayOrder
from runtime.base.encodings import FILES
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.limits import Routes
from runtime.base.spec.models import Amount, BatchBudget, JobSpec
from runtime.base.values import JobKey, StepRef, Usage
from runtime.base.workflow_ids import is_nameable
from runtime.context.sub_job_end import SubJobEnd
from runtime.job.divergence import Divergence
from runtime.job.phases import Phase
from runtime.job.purse import SavedPurse
from runtime.job.stops import JobStatus

TASK_QUEUE = "holdfast"


class Message(BaseModel):
    """A frozen value that crosses the workflow boundary."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @property
    def misfit(self) -> str | None:
        """Why no workflow can take it, whose task would fail for ever; None if one can."""
        return None


class JobProgress(Message):
    """Answer of the ``progress`` query."""

    status: JobStatus
    turn: int
    phase: Phase
    usage: Usage = Usage()
    cost_usd: float = 0.0
    statement: str = ""
    paused: bool = Field(default=False, exclude_if=lambda paused: not paused)
    """Whether it was asked to pause: a turn that runs comes to its end first, a sleep or a question
    goes on beside.
    """


class Origin(Message):
    """Where a run begins that does not begin a job: after ``parent``, in the state of
    ``checkpoint`` if there is one.

    ``seed`` is the key of the job whose random numbers go on. ``restore`` leads from the checkpoint
    to where the run begins, ``replay`` is what holds from there on. ``heard`` are the ids of the
    notes that the job was sent, ``ended`` the ends of sub-jobs that no turn began with. The rest is
    what the run before had not done yet: messages and a wish that nobody has read, and what a
    replay found that no step says yet. Nobody reads ``replied_at`` any more; orders of before have
    it.
    """

    checkpoint: StepRef | None = None
    parent: StepRef | None = None
    seed: str
    restore: ReplayOrder | None = None
    replay: ReplayOrder | None = None
    inbox: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    condense: bool = False
    replied_at: float = 0.0
    divergences: tuple[Divergence, ...] = ()
    nodes: tuple[dict[str, Any], ...] | None = None
    nodes_at_end: bool = False
    events: tuple[dict[str, Any], ...] | None = None
    ended: tuple[SubJobEnd, ...] = ()
    through: tuple[str, ...] = Field(default=(), exclude_if=lambda through: not through)
    """As ``Moment`` has it."""
    taken_back: bool = Field(default=False, exclude_if=lambda taken_back: not taken_back)
    """As ``JobOutcome`` has it."""
    stood: JobProgress | None = Field(default=None, exclude_if=lambda stood: stood is None)
    """Where the job stood as the run before ended."""


class JobOrder(Message):
    """A job to run: its name and its definition.

    ``definition`` is the digest that tells changed definitions apart.

    ``origin`` is None for a job that begins. A ``withdrawn`` job was cancelled while it waited for
    a place: it ends as cancelled, with its definition and its end in the archive, before its first
    turn. ``id`` is another for each order of a client; one that is given again is refused.
    """

    key: JobKey
    spec: JobSpec
    definition: str
    origin: Origin | None = None
    withdrawn: bool = False
    id: str = ""
    granted: Amount | None = None
    """What the job was granted of its batch's budget until it began; None: that has none."""
    refused: str = ""
    """Why it is granted no more."""
    routes: Routes | None = None
    """By which queues its limited calls go; None: all by its batch's."""
    paused: bool = False
    """Whether it begins paused."""
    held: bool = False
    """Whether it begins paused since its parent is."""
    told: bool = False
    """Whether its sub-jobs know that it is paused."""
    until: str = ""
    """When the time is over that the batch has, as ISO 8601 has it; empty: never."""
    asked: str = Field(default="", exclude_if=lambda asked: not asked)
    """The wish for more of the batch's budget that has no answer yet."""
    names: str = Field(default="", exclude_if=lambda names: not names)
    """The order by which sub-jobs are named; empty: ``id``. A job that was lost goes on by another
    order, and finds those that it has started."""

    @property
    def misfit(self) -> str | None:
        """See ``Message``."""
        nodes = (self.origin.nodes if self.origin is not None else None) or ()
        if not self.key.batch or not self.key.job:
            return "its job or batch has no name"
        if not is_nameable(self.key):
            return "the name of its job is longer than that of a workflow may be"
        if self.spec.encoding not in FILES:
            return f"its encoding {self.spec.encoding!r} is unknown"
        if not all(isinstance(node.get("obj_id"), str) for node in nodes):
            return "a node of its origin has no obj_id"
        return None


class Note(Message):
    """What a client tells a workflow that runs.

    ``id`` is another for each: one that is given again is not taken again.
    """

    id: str
    text: str = ""

    @classmethod
    def of(cls, text: str = "") -> Note:
        """A note for a client to send."""
        return cls(id=uuid.uuid4().hex, text=text)


class PageSplit(Message):
    """A page with jobs that nobody wants any more: a page of them, and one of the ``rest``, if
    there are others.
    """

    page: str
    unwanted: PageRef
    rest: PageRef | None = None


class Withdrawal(Message):
    """What a client tells a batch: which jobs of its pages are not to begin.

    Whole pages, so that it is as short for a hundred thousand jobs as for a few.
    """

    splits: tuple[PageSplit, ...]


class Hold(Note):
    """What a job tells its sub-jobs: whether they are paused with it."""

    held: bool


class JobOutcome(Message):
    """How a run ended.

    The result itself is in the archive, under ``end``: histories hold no large values twice.
    """

    key: JobKey
    run: str = ""
    status: JobStatus
    reason: str = ""
    turns: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    end: StepRef | None = None
    score: float | None = None
    """What the job's ``check`` gave it."""
    cause: str = ""
    """What made a job fail, as ``Cause`` has it; empty for any other end."""
    lent: Amount | None = None
    """What its sub-jobs spent, if it had any, beside what it spent itself."""
    taken_back: bool = Field(default=False, exclude_if=lambda taken_back: not taken_back)
    """Whether the job was reset: then what it used does not tell of the turns that were taken
    back.
    """


class BatchEnd(Message):
    """A run of a job has ended; the batch starts the job again, as try ``again``, if that is not
    0.
    """

    outcome: JobOutcome
    again: int = 0


class CarriedPurse(Message):
    """What a batch has granted of its budget. It ``began`` then (seconds since 1970), and has its
    time ``until`` then, as ISO 8601 has it.
    """

    began: float
    until: str
    purse: SavedPurse


class BatchTold(Message):
    """Who is told of a batch's ends, the ends of jobs that are yet to be told, and what is told of
    the batch: how many jobs ended how, and what they used.

    ``deaf``: the last end could not be told. ``number`` counts those that somebody tried to tell.
    """

    order: OnFinish | None = None
    due: tuple[JobOutcome, ...] = ()
    deaf: bool = False
    number: int = 0
    counts: dict[str, int] = {}
    tokens: int = 0
    cost_usd: float = 0.0


class BatchCarried(Message):
    """What a run of a batch hands to the next.

    ``open`` are the jobs that run, with the first run of each one's chain. ``started``, ``ended``
    and ``runs`` know of jobs that came by name. ``pages`` are not read yet, and ``gone`` are the
    jobs in them that were withdrawn by name, with the ids of their orders. The jobs of ``unwanted``
    pages are to end as cancelled. ``told`` are the last of the ``ends``.
    """

    concurrency: int
    open: tuple[Followed, ...] = ()
    waiting: tuple[JobOrder, ...] = ()
    again: dict[str, JobOrder] = {}
    started: dict[str, str] = {}
    ended: dict[str, JobStatus] = {}
    runs: dict[str, str] = {}
    pages: tuple[PageRef, ...] = ()
    paged: tuple[str, ...] = ()
    gone: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    unwanted: tuple[PageRef, ...] = Field(default=(), exclude_if=lambda value: not value)
    dropped: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """The open jobs that are to end as cancelled."""
    lost: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    """The pages that cannot be read, by their digests, and what is wrong with each."""
    tries: dict[str, int] = {}
    ends: int = 0
    told: tuple[BatchEnd, ...] = ()
    purse: CarriedPurse | None = None
    routes: Routes | None = None
    paused: bool = False
    heard: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """The ids of what users told the batch, each of which is taken once."""
    finishing: BatchTold = BatchTold()

    @field_validator("gone", mode="before")
    @classmethod
    def _names_alone(cls, gone: Any) -> Any:
        """Earlier builds carried the names alone."""
        return dict.fromkeys(gone, "") if isinstance(gone, list | tuple) else gone


class BatchOrder(Message):
    """A batch to run. Its jobs come by the ``submit`` update.

    ``carried`` is None for a batch that begins.
    """

    batch: str
    carried: BatchCarried | None = None


class Submission(Message):
    """Jobs to add to a batch: those that are named, and those of ``pages`` in the archive.

    ``rerun`` names those that may start anew although they ended in this batch run.

    ``ends`` has, by job, the first run of the chain whose end made its client ask for that.
    ``on_finish`` says who is told of ends from now on.
    """

    jobs: tuple[JobOrder, ...]
    concurrency: int
    rerun: tuple[str, ...] = ()
    ends: dict[str, str] = {}
    pages: tuple[PageRef, ...] = ()
    budget: BatchBudget | None = None
    """What the batch's jobs may spend together."""
    spent: Amount | None = Field(default=None, exclude_if=lambda spent: spent is None)
    """What they have spent of it before the batch began; workers of before know of none."""
    routes: Routes | None = None
    """By which queues their limited calls go."""
    on_finish: OnFinish | None = None
    id: str = Field(default="", exclude_if=lambda id: not id)
    """Another for each: one that is given again is not taken again."""

    @field_validator("jobs")
    @classmethod
    def _can_be_started(cls, jobs: tuple[JobOrder, ...]) -> tuple[JobOrder, ...]:
        """Refuse all where a batch could not start one, and would fail its task for ever."""
        for job in jobs:
            if job.misfit is not None:
                raise ValueError(f"a job's order cannot be carried out: {job.misfit}")
        return jobs


class BatchState(Message):
    """Answer of the ``state`` query: ids of the batch's jobs by what has become of them.

    Those of ``pages`` wait too. ``paused``: until the batch is to go on.
    """

    waiting: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    ended: dict[str, JobStatus] = {}
    pages: tuple[PageRef, ...] = ()
    paused: bool = False


class BatchNews(Message):
    """Answer of the ``news`` query: how many runs of jobs have ended so far, the newest of those
    that its client does not know, and how the batch stands.

    ``first`` is the number of the first of ``ends``: there were others before, which are forgotten,
    if it is more than was asked for.
    """

    total: int = 0
    first: int = 0
    ends: tuple[BatchEnd, ...] = ()
    open: tuple[str, ...] = ()
    waiting: int = 0


NEW_ORDER = "new"
"""The id of the order in a page by which a job begins: a job has one such order, whoever gives it
how often.
"""


def again_after(run: str) -> str:
    """The id of the order in a page by which a job begins anew after its chain of runs from ``run``
    has ended: there is one too.
    """
    return f"after {run}"


def batch_queue(batch: str) -> str:
    """The task queue of a batch and its jobs: a worker of one batch leaves the jobs of all others
    alone.
    """
    return f"{TASK_QUEUE}/{batch}"


def outcome_of(value: Any) -> JobOutcome:
    """A ``JobOutcome`` from a workflow result that was decoded without a type."""
    return JobOutcome.model_validate(value)
