"""What activities take and return: the only thing that workflows know of them.

No I/O and no heavy imports here, so workflow code may import it. Every value is small and bounded:
inputs carry what is new in the turn, never the prompt (docs/design.md section 3).
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import Field, field_serializer, field_validator, model_serializer, model_validator

from activities.brief import (
    brief_events,
    brief_execution,
    brief_parent,
    brief_step,
    full_events,
    full_execution,
    full_parent,
    full_step,
)
from activities.record import EffectName, ReplySource
from runtime.base.effect_classes import EffectClass
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import Amount, Retry, ToolSpec, Writable
from runtime.base.spec.servers import ServerListing, ServerSpec
from runtime.base.values import Compact, Failed, JobKey, ModelReply, StepRef, Usage
from runtime.context.material import Material
from runtime.context.sources import ReadRequest, ReadResult
from runtime.history.condensers.request import SummaryForm
from runtime.job.aftermath import Aftermath, BetweenCalls
from runtime.projection.prices import Prices
from runtime.projection.segments import LayoutDelta

BUDGET_SPENT = "BudgetSpent"
"""The type of the error by which a model call ends whose failed attempts have used up what the job
had left.
"""

BUDGET_SHORT = "BudgetShort"
"""The type of the error of a model call that was not made, since its worst case does not fit into
what the job has left; the message is the reason.
"""

HELD = "held"
"""In a call's heartbeats: why its reply, which is there, cannot be archived."""

HAS_ROOM = "has-room"
"""A detail of the error of a call that was refused without a reason: its prompt is far from filling
the model's window, so a smaller one would be refused too.
"""


class Contract(Compact):
    """A frozen value that crosses the activity boundary."""


class Worked(Contract):
    """What an activity gives back, with the seconds for which the attempt that gave it worked.

    ``activities/working_time.py`` tells them; None where nobody did, as in histories of before.
    """

    worked: float | None = None

    @property
    def timeless(self) -> Self:
        """What it gives back, however long that took: what of it is compared with a record."""
        return self.model_copy(update={"worked": None})


class ReplyForm(StrEnum):
    """How a model hands over its statement."""

    TOOL = "tool"
    SCRIPT = "script"


class JobBegin(Contract):
    """The begin of a run: the job's definition, which the archive keeps; and the id of the order by
    which it is a fork.

    ``order`` is the id of the order to run the job, which ``first_run`` and its resets have, and no
    other run.
    """

    key: JobKey
    definition: dict[str, Any]
    fork: str | None = None
    order: str = ""
    first_run: str = ""


class JobBegan(Worked):
    """What the worker knows of a job that begins: the interpreter that runs its statements, what
    its model's prompts cost, and the build that it began with (none in histories from before builds
    had ids); and whether the server has Holdfast's search attributes (``searchable``).
    """

    interpreter: str
    prices: Prices = Prices()
    build: str = ""
    replay_version: int = 0
    searchable: bool = False

    @model_validator(mode="before")
    @classmethod
    def _as_before(cls, data: Any) -> Any:
        """Histories of jobs that began earlier hold the interpreter alone: the relations of prices
        are the usual ones then.
        """
        return {"interpreter": data} if isinstance(data, str) else data


class Left(Contract):
    """What a job has left of its budgets as a model call begins; a list in JSON, since each turn's
    history holds one.
    """

    tokens: int
    usd: float
    seconds: float

    @model_serializer(mode="plain", when_used="json")
    def _brief(self) -> list[float]:
        # Never more than there is, and exact to a millionth.
        return [self.tokens, math.floor(self.usd * 1e6 + 1e-6) / 1e6, self.seconds]

    @model_validator(mode="before")
    @classmethod
    def _full(cls, data: Any) -> Any:
        return dict(zip(cls.model_fields, data, strict=True)) if isinstance(data, list) else data


class TurnCall(Contract, BetweenCalls):
    """One turn's model call: how to make the prompt from the previous one, and what the step
    holds beside it.

    ``parent`` is the step of the turn before. ``model`` is what litellm is called with (``name``
    and options). With ``given``, no model is called. ``redact`` is what is masked once more, by
    value. ``moved`` says why the prompt does not begin as the one before, if so. ``left`` is what
    failed attempts may use up (None: anything), ``retry`` how many there may be, and ``booked`` is
    what earlier calls of the turn used that came to nothing, which the job has booked; of them,
    ``tried`` were attempts at this prompt too, which ``retry`` bounds with those that follow: they
    used up slices of the batch's budget, or another one had to be waited for. ``accepted``
    is the size of the largest prompt that the model has answered, in tokens as ``tokens_of`` counts
    them: an empty reply to a larger one is no reply if it was cut off. With 0 every reply is one.
    ``through`` are the runs that the job came through since ``parent``, without a call.
    """

    key: JobKey
    turn: int
    parent: StepRef | None = None
    layout: LayoutDelta
    model: dict[str, Any]
    form: ReplyForm = ReplyForm.TOOL
    encoding: str = "cl100k_base"
    events: tuple[dict[str, Any], ...] = ()
    given: ReplySource | None = None
    moved: str = ""
    redact: Redaction = Redaction()
    left: Left | None = None
    retry: Retry = Retry()
    booked: Failed = Failed()
    tried: Failed = Failed()
    accepted: int = 0
    through: tuple[str, ...] = Field(default=(), exclude_if=lambda through: not through)

    @field_serializer("parent", when_used="json")
    def _brief_parent(self, parent: StepRef | None) -> Any:
        return None if parent is None else brief_parent(parent, str(self.key), self.turn)

    @field_serializer("execution", when_used="json")
    def _brief_execution(self, execution: dict[str, Any] | None) -> Any:
        return (
            None
            if execution is None
            else brief_execution(execution, self.turn, self.layout.added_texts)
        )

    @field_serializer("events", when_used="json")
    def _brief_events(self, events: tuple[dict[str, Any], ...]) -> Any:
        return brief_events(events, self.turn, self.nodes)

    @model_validator(mode="before")
    @classmethod
    def _full(cls, data: Any) -> Any:
        """The call with all fields in full: a history holds their short forms."""
        if not isinstance(data, dict):
            return data
        parent, execution, full = data.get("parent"), data.get("execution"), dict(data)
        if full.get("events"):
            full["events"] = full_events(full["events"], data["turn"], data.get("nodes", ()))
        if isinstance(parent, list):
            full["parent"] = full_parent(
                parent, str(JobKey.model_validate(data["key"])), data["turn"]
            )
        if isinstance(execution, dict):
            layout = LayoutDelta.model_validate(data["layout"])
            full |= {
                "layout": layout,
                "execution": full_execution(execution, data["turn"], layout.added_texts),
            }
        return full


class SummaryCall(Contract):
    """A model call that sums up a stretch of a job, before the call of ``turn``.

    ``name`` is unique in the run: the call is archived as the side run ``<run>~<name>``, which
    starts from ``parent``. ``layout`` makes its prompt from the parent's; ``prompt`` says whether
    that is one of its own, or the agent's with the instruction at its end. ``form`` is the agent's.
    ``left`` and ``retry`` are as in ``TurnCall``.
    """

    key: JobKey
    turn: int
    name: str
    parent: StepRef | None = None
    layout: LayoutDelta
    prompt: SummaryForm
    model: dict[str, Any]
    form: ReplyForm = ReplyForm.TOOL
    encoding: str = "cl100k_base"
    redact: Redaction = Redaction()
    reset_event_id: int
    left: Left | None = None
    retry: Retry = Retry()


def summary_name(kind: str, turn: int, effect: int) -> str:
    """The name of a side run that has a view or a group summed up, prepared as an effect of
    ``turn``.
    """
    return f"{kind}-{turn}-{effect}"


class CutCall(Contract):
    """A model call that was cut: the one that ``activity`` made for ``turn`` with ``model``.

    ``side`` is the name of its side run, if it was a summary's.
    """

    key: JobKey
    turn: int
    activity: str
    model: dict[str, Any]
    side: str = ""


class TurnReply(ModelReply, Worked):
    """What the model answered, where the archive holds it, and which attempt of the activity it
    was.

    ``at`` is when the reply was archived, in seconds since 1970: the time at which the clock of its
    statement stands, so that the statement comes to the same when its run is reset.
    """

    step: StepRef
    attempt: int = 1
    at: float = 0.0

    @field_serializer("step", when_used="json")
    def _brief_step(self, step: StepRef) -> Any:
        return brief_step(step)

    @field_validator("step", mode="before")
    @classmethod
    def _full_step(cls, step: Any) -> Any:
        return full_step(step) if isinstance(step, str) else step


class HeldVersion(Contract):
    """The version of a workspace of the job's own that is read or changed.

    ``sandbox`` is the one that the job's commands run in, by which its files are laid out.
    """

    version: str
    sandbox: Literal["auto", "bwrap", "none"] = "auto"


class WorkspaceOpen(Contract):
    """The begin of a job's own workspace: where its files come from, and how it is held.

    ``recorded``: where a record has what another run's began with, which this one begins with too.
    """

    key: JobKey
    workspace: str
    writable: Writable
    redact: Redaction = Redaction()
    recorded: EffectName | None = None


class WorkspaceOpened(Worked):
    """The version that a workspace begins with, how many files and bytes that is, and what was not
    taken in. ``sandbox`` is the one that commands will run in.
    """

    version: str
    files: int = 0
    size: int = 0
    dropped: tuple[str, ...] = ()
    sandbox: str = ""


class Decision(Contract):
    """A person's answer to a question: ``by`` whom it is, and ``at`` which time (seconds since
    1970); neither, if nobody answered in time.

    ``arguments`` (``args`` and ``kwargs``) stand in for those that were asked for, but at the
    places in them that are ``kept``; None: all are kept.
    """

    question: str
    approved: bool
    by: str = ""
    at: float = Field(default=0.0, allow_inf_nan=False)
    reason: str = ""
    arguments: dict[str, Any] | None = None
    kept: tuple[tuple[str | int, ...], ...] = ()

    @field_validator("arguments")
    @classmethod
    def _of_a_call(cls, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
        """Refuse what no call has: the job's task would fail for ever."""
        for name, kind in (("args", list), ("kwargs", dict)):
            if arguments is not None and not isinstance(arguments.get(name, kind()), kind):
                raise ValueError(f"{name} is no {kind.__name__}")
        return arguments


class ToolRequest(Contract):
    """One call of a job's tool.

    ``effect`` numbers the statement's effects from 0; ``recorded`` answers without a call.
    ``often``, ``timeout`` and ``retries`` are the tool's ``effect``, and so on. One of an MCP
    ``server`` is named by what the server calls it, and has the ``digest`` of the job's record.
    ``decision`` is that of a person who was asked about it. ``secrets`` are the names of those that
    the tool is given.
    """

    key: JobKey
    turn: int
    effect: int
    tool: str
    search_path: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    often: EffectClass = EffectClass.IDEMPOTENT
    timeout: float | None = None
    retries: int = 0
    secrets: tuple[str, ...] = ()
    server: ServerSpec | None = None
    digest: str = ""
    decision: Decision | None = None
    redact: Redaction = Redaction()
    recorded: EffectName | None = None

    @property
    def target(self) -> str:
        """What the process of the tool knows it by."""
        return self.tool if self.server is None else f"{self.digest} {self.tool}"

    @property
    def called(self) -> str:
        """What people know it by."""
        return self.tool if self.server is None else f"{self.server.name}.{self.tool}"


class WorkspaceChange(Contract):
    """One effect on a workspace: a function from a version to a version.

    ``operation`` is ``sh``, ``write``, ``edit``, ... with its ``arguments``. ``effect`` numbers the
    statement's effects from 0; ``recorded`` answers without doing anything. ``decision`` is that of
    a person who was asked about it. ``tool`` is the call of one that works on the files.
    """

    key: JobKey
    turn: int
    effect: int
    held: HeldVersion
    writable: Writable
    operation: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    tool: ToolRequest | None = None
    decision: Decision | None = None
    redact: Redaction = Redaction()
    recorded: EffectName | None = None


class WorkspaceChanged(Worked):
    """What an effect gave, or the exception it raised; and the version after it, which is the one
    before if nothing changed.

    ``changed`` are paths with ``A``, ``M`` or ``D``, of all ``count`` the first. ``base`` is the
    version from which it started. All further changes are in the folders ``within``, ``""`` being
    the workspace.
    """

    value: Any = None
    version: str
    base: str = ""
    changed: tuple[tuple[str, str], ...] = ()
    count: int = 0
    within: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    error_type: str | None = None
    error_message: str = ""


class GroupMaterial(Contract):
    """What a group's summary is to be made from. ``redact`` is what is masked in it, by value."""

    material: Material
    redact: Redaction = Redaction()


class ReadBatch(Contract):
    """Sources to read in one activity: an effect of a statement, or all that are due at a tick.

    ``urls`` are the web pages that may be read, ``summary_model`` is what writes summaries (None:
    nothing does). ``material`` is where the store has what a group's summary is to be made from,
    which is then read in place of a source. ``left`` and ``retry`` bound the call that has a
    summary written, as in ``TurnCall``. What is read is archived as effect ``effect`` of the turn's
    statement, if ``key`` is given; ``recorded`` answers from there. With ``held``, that version of
    the job's own workspace is read, in place of a directory. ``servers`` are the MCP servers whose
    resources are read. What a tick read without news is archived if a view was ``marked`` as
    behind: the mark goes.
    """

    workspace: str
    held: HeldVersion | None = None
    requests: tuple[ReadRequest, ...]
    encoding: str
    urls: tuple[str, ...] = ()
    servers: tuple[ServerSpec, ...] = Field(default=(), exclude_if=lambda value: not value)
    summary_model: dict[str, Any] | None = None
    material: str = ""
    redact: Redaction = Redaction()
    left: Left | None = None
    retry: Retry = Retry()
    key: JobKey | None = None
    turn: int = 0
    effect: int = 0
    recorded: EffectName | None = None
    marked: bool = Field(default=False, exclude_if=lambda value: not value)


class ReadBatchResult(Worked):
    """One result for each request, in the same order, and of a record those that it has; what a
    model cost that had to be asked.
    """

    results: tuple[ReadResult, ...]
    usage: Usage = Usage()
    cost_usd: float = 0.0


class FileCall(Contract):
    """One ``open``/``os``/``pathlib`` call of a statement.

    ``operation`` is Monty's name for it (``Path.iterdir``, ``open``, ...).

    ``held``, ``key``, ``turn``, ``effect`` and ``recorded`` are as in ``ReadBatch``.
    """

    workspace: str
    held: HeldVersion | None = None
    operation: str
    path: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    redact: Redaction = Redaction()
    key: JobKey | None = None
    turn: int = 0
    effect: int = 0
    recorded: EffectName | None = None


class FileCallResult(Worked):
    """The call's value (JSON; text, bytes as base64, a list of names, a stat), or the Python
    exception it raises.
    """

    value: Any = None
    encoding: str = "json"
    error_type: str | None = None
    error_message: str = ""


class ApprovalQuestion(Contract):
    """Whether effect ``effect`` of a statement, a call of ``tool``, may be made.

    After ``wait`` seconds the answer is ``otherwise``.
    """

    id: str
    key: JobKey
    turn: int
    effect: int
    tool: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    wait: float | None = None
    otherwise: str = "reject"
    redact: Redaction = Redaction()


class Asked(Worked):
    """A question stands in the archive; its answer names ``id``.

    A run that a reset makes has its own id, and the answers that the run before it was given: what
    they name is in the history.
    """

    id: str = ""
    """Empty in histories of before, where it was that of the question."""
    made: Decision | None = None
    """The decision on a call that was made already, which nobody is asked about again."""


class ToolResult(Worked):
    """The tool's return value as JSON, or the exception it raised."""

    value: Any = None
    error_type: str | None = None
    error_message: str = ""


class ServersQuestion(Contract):
    """Which tools a job's MCP servers offer: asked once, as the job begins.

    ``recorded`` answers without them.
    """

    key: JobKey
    servers: tuple[ServerSpec, ...]
    redact: Redaction = Redaction()
    recorded: EffectName | None = None


class ServersListed(Worked):
    """What the servers offered, one for each, in the same order."""

    listings: tuple[ServerListing, ...]


class CheckRequest(Contract):
    """What a job's ``check`` is to give a score to: its result, and its files.

    ``workspace`` is a directory, or ``version`` that of the job's own workspace. ``turn`` is the
    one that finished.
    """

    key: JobKey
    turn: int
    check: ToolSpec
    result: Any = None
    workspace: str = ""
    version: str = ""
    secrets: tuple[str, ...] = ()
    redact: Redaction = Redaction()


class Checked(Worked):
    """The score that the check gave, None if it gave none, and what it says of it."""

    score: float | None = None
    remarks: str = ""


class JobEnd(Contract, Aftermath):
    """The end of a run: the last step's digest chain closes with it.

    ``hand_patch``: what the job changed in its files is archived too, as a patch. ``lent`` is what
    its sub-jobs spent, if it had any; ``unread`` are the messages that came too late for a turn.
    """

    key: JobKey
    turn: int
    parent: StepRef | None
    status: str
    reason: str
    result: Any = None
    hand_patch: bool = False
    usage: Usage = Usage()
    cost_usd: float = 0.0
    score: float | None = None
    remarks: str = ""
    lent: Amount | None = None
    unread: int = 0
    events: tuple[dict[str, Any], ...] = ()
    redact: Redaction = Redaction()
