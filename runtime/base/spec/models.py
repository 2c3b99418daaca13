"""What one batch and its jobs are, fully resolved: no defaults left to fill in, no path left
relative.

These values go into workflow inputs and the archive, so they are frozen, serialise to JSON and come
back equal. This module imports pydantic and values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from runtime.base.durations import LONGEST
from runtime.base.effect_classes import Approval, EffectClass
from runtime.base.encodings import DEFAULT_ENCODING
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.servers import ServerSpec
from runtime.base.spec.shell_commands import matches, readings

DEFAULT_CONCURRENCY = 8
DEFAULT_CONTEXT_TOKENS = 60_000

SCRIPTED = "scripted/"
"""What the name of a model that is a file begins with; the file's path comes behind it."""

NO_MODEL = "none"
"""In the place of a summary model's name: nothing is summed up."""


class Spec(BaseModel):
    """A frozen value; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Budget(Spec):
    """What one job may spend. The job stops with status ``budget`` when any of these is used up."""

    turns: int = Field(default=40, ge=1)
    """Model calls."""
    tokens: int = Field(default=2_000_000, ge=1)
    """Prompt and completion tokens of all calls together."""
    usd: float = Field(default=5.0, gt=0)
    """US dollars, as litellm prices the calls."""
    wall_seconds: float = Field(default=6 * 3600.0, gt=0)
    """Seconds that are worked for the job, its own waits included; not those in which no worker is
    there.
    """
    deadline: float | str | None = None
    """When the job ends by the clock: seconds after its start, or a time as ISO 8601 has it, with
    its zone; None: whenever.
    """


class Amount(Spec):
    """So many turns, tokens and US dollars; None: no bound of that kind."""

    turns: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)


class BatchBudget(Amount):
    """What all jobs of a batch may spend together, and the seconds by the clock that they have from
    the batch's start on.
    """

    wall_seconds: float | None = Field(default=None, gt=0, le=LONGEST)


class Retry(Spec):
    """How long a model call is patient: with attempts that fail, with silence.

    A turn that outlives it fails its job.

    The defaults leave a model that thinks for minutes before it speaks the time to do so, and a
    provider two hours to recover.
    """

    attempts: int = Field(default=30, ge=1)
    """Attempts that fail, whatever it was; those over which a worker died do not count."""
    time: float = Field(default=7_200.0, gt=0)
    """Seconds that failed attempts and the waits after them may take in all.

    Time in which no worker was there is none of it.
    """
    first_byte: float = Field(default=600.0, gt=0)
    """Seconds from the request to the reply's first byte, where replies are streamed."""
    stall: float = Field(default=300.0, gt=0)
    """Seconds between two pieces of a reply."""
    on: tuple[str, ...] = ("provider", "tool", "error")
    """What of a failed job is tried again, as ``runtime.job.stops.Cause`` has it."""
    times: int = Field(default=0, ge=0)
    """How often a job that has failed is started again, as another run of the same job."""


class ModelSettings(Spec):
    """The model of a job.

    ``name`` is a litellm model name, or ``scripted/`` and the absolute path of a script
    (``scripted//home/me/policy.py``). ``options`` are the further keyword arguments of the litellm
    call; they hold JSON values and never a secret.
    """

    name: str
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def script(self) -> str | None:
        """The absolute path of the script of a scripted model, else None."""
        return self.name.removeprefix(SCRIPTED) if self.name.startswith(SCRIPTED) else None


class CondenserSpec(Spec):
    """What a job's prompt forgets, and when. The contract and the goal always stay."""

    kind: str
    """One of ``runtime.history.condensers.kinds``."""
    max_size: int | None = Field(default=None, ge=1)
    """Events in the prompt above which it condenses, to half as many; None: only when its tokens do
    not fit.
    """
    keep_first: int = Field(default=2, ge=0)
    """Events at the beginning that stay; the contract and the goal are the first two."""
    model: ModelSettings | None = None
    """The model that writes summaries; None for the job's own."""
    input_tokens: int = Field(default=50_000, ge=1)
    """Tokens of events that one summary stands for at most."""
    summary_tokens: int = Field(default=1_500, ge=1)
    """Tokens that a summary or an extract may have; at most an eighth of the window in any case."""


class ProjectionPolicy(StrEnum):
    """When what stands in the middle of a prompt is rewritten (``runtime/job/places.py``)."""

    AUTO = "auto"
    """When that costs less than telling further down what changed."""
    INLINE = "inline"
    """As soon as it changes."""
    APPEND = "append"
    """Only where the window demands it."""


LEAST_SECTION = 64
"""Tokens below which a text is not cut any further, and no section can be bounded."""


class Sections(Spec):
    """The most tokens that the parts of a prompt may have, beside what ``context_tokens`` bounds;
    None: nothing else.

    What goes for it leaves a line: a mark at a view's place, a number of changes, a summary of what
    was said.
    """

    history: int | None = Field(default=None, ge=LEAST_SECTION)
    """Statements, results and messages. Beyond it the job's condenser is asked."""
    views: int | None = Field(default=None, ge=LEAST_SECTION)
    """Views that are shown on their own.

    Beyond it the oldest are left out; pinned ones are shown smaller.
    """
    groups: int | None = Field(default=None, ge=LEAST_SECTION)
    """Groups. Beyond it the largest are shown smaller."""
    notes: int | None = Field(default=None, ge=LEAST_SECTION)
    """Notes. Beyond it the largest are shown smaller."""
    feed: int = Field(default=4_000, ge=LEAST_SECTION)
    """The delta feed; an eighth of ``context_tokens`` where that is less."""
    handles: int = Field(default=3_000, ge=LEAST_SECTION)
    """The handle table; an eighth of ``context_tokens`` where that is less."""


def auto(model: ModelSettings) -> str:
    """The kind of condenser that suits a job's model: a script cannot be expected to summarise."""
    return "summary" if model.script is None else "extract"


class CommandRule(Spec):
    """Whether a person is asked before commands that fit a pattern of the shell."""

    pattern: str
    approval: Approval


class Approvals(Spec):
    """Which calls wait for a person, and how long."""

    tools: dict[str, Approval] = Field(default_factory=dict)
    """By the tools' names, those of MCP servers as ``server.method``; in place of what they say
    themselves.
    """
    sh: tuple[CommandRule, ...] = ()
    """Of the shell's commands: the first pattern that fits holds."""
    wait: float | None = Field(default=None, gt=0)
    """Seconds after which a question is answered by itself; None: as long as the job may last."""
    otherwise: Literal["reject", "approve"] = "reject"
    """The answer that it then gets."""

    def of_tool(self, name: str, own: Approval) -> Approval:
        """Whether a call of a tool waits, which says ``own`` itself."""
        return self.tools.get(name, own)

    def of_command(self, command: str) -> Approval:
        """Whether a command waits: the strictest answer for it and for each of those in it."""
        if not self.sh:
            return Approval.NEVER
        try:
            read = readings(command)
        except ValueError:
            # Nobody knows what is in so much text: it may be what the strictest rule is for.
            return max((rule.approval for rule in self.sh), key=_STRICTNESS.index)
        approvals = (self._of_reading(reading) for reading in read)
        return max(approvals, key=_STRICTNESS.index, default=Approval.NEVER)

    def _of_reading(self, reading: str) -> Approval:
        fitting = (rule.approval for rule in self.sh if matches(reading, rule.pattern))
        return next(fitting, Approval.NEVER)


_STRICTNESS = (Approval.NEVER, Approval.ONCE_PER_ARGS, Approval.ALWAYS)


class ToolSpec(Spec):
    """A tool as a statement sees it, and where its code is."""

    name: str
    """The name the statement calls it by: an identifier, unique in the job."""
    target: str
    """``module:function``."""
    search_path: str
    """The absolute directory in which the module is looked for first: the jobs file's."""
    stub: str
    """One line of Python for the type checker: ``def search(query: str, limit: int = 5) ->
    list[str]: ...``.
    """
    doc: str = ""
    """The first paragraph of the function's docstring, on one line."""
    is_async: bool = False
    """Whether the function is a coroutine function.

    A statement calls it without ``await`` either way.
    """
    effect: EffectClass = EffectClass.IDEMPOTENT
    """How often it may run for one call."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds that a try of a call may take; None: as long as any activity."""
    retries: int = Field(default=0, ge=0)
    """How often a call is made again that failed."""
    approval: Approval = Approval.NEVER
    """Whether a person is asked before a call."""
    workspace: bool = False
    """Whether it works on the job's own files: a call leads from one version to another."""
    queue: str | None = None
    """The workers that take its calls; None: those of its batch."""


class Spawn(Spec):
    """How many sub-jobs the statements of a job may start, and what one is given.

    ``turns``, ``tokens`` and ``usd`` are lent to a sub-job whose ``spawn`` does not say otherwise.
    """

    max: int = Field(default=10, ge=1)
    """Sub-jobs that the job may start in all."""
    depth: int = Field(default=1, ge=1)
    """Generations below the job: with 1, its sub-jobs start none."""
    turns: int = Field(default=20, ge=1)
    tokens: int = Field(default=500_000, ge=1)
    usd: float = Field(default=1.0, gt=0)
    model: ModelSettings | None = None
    """The model of sub-jobs; None: the job's own."""


DEFAULT_EXCLUDE = ("__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/")
"""What a workspace that a job may change leaves out unless its job says otherwise: what tools make
anew.
"""


SETUP_SECONDS = 1_800
"""How long a set-up may take: downloads and builds are more than a statement's commands."""


class Writable(Spec):
    """What makes a workspace one that its job may change: a copy of its own, in versions."""

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    """Patterns as in ``.gitignore`` of what is neither taken in nor kept."""
    setup: str = ""
    """Shell commands that make ``/env``, once for equal inputs on a host; empty: there is none."""
    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    """What commands run in. ``none`` is no sandbox at all."""
    network: bool = False
    """Whether commands reach the network."""
    keep: tuple[str, ...] = ()
    """Patterns of files that are handed over with the result."""
    secrets: tuple[str, ...] = ()
    """Names of the worker's environment variables that commands are given."""


class JobSpec(Spec):
    """One job of a batch."""

    id: str
    goal: str
    workspace: str
    """The absolute path of a directory that the job may read, or that its own workspace begins as a
    copy of. A ``writable`` one may begin empty (``""``) or as another job's
    (``holdfast://JOB@N``).
    """
    writable: Writable | None = None
    """Whether the job may change its workspace, and how; None: it may not."""
    tools: tuple[ToolSpec, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of the worker's environment variables that its Python tools are given."""
    mcp: tuple[ServerSpec, ...] = ()
    """The MCP servers whose tools it may call."""
    approvals: Approvals = Approvals()
    """Which calls wait for a person."""
    result: dict[str, Any] | None = None
    """The JSON Schema that the value given to ``finish`` must satisfy; None where any value will
    do.
    """
    model: ModelSettings
    form: Literal["tool", "script"] = "tool"
    """How the model hands over a statement: a native tool call, or a ``<script>`` block in its
    text.
    """
    budget: Budget = Budget()
    retry: Retry = Retry()
    """How long a model call is patient."""
    context_tokens: int = Field(default=DEFAULT_CONTEXT_TOKENS, ge=1)
    """The size to which prompts are projected, in tokens of ``encoding``."""
    sections: Sections = Sections()
    """What of that its parts may take."""
    condenser: tuple[CondenserSpec, ...] = Field(
        default_factory=lambda fields: (CondenserSpec(kind=auto(fields["model"])),)
    )
    """What gives way when a prompt is too large, the first that has an answer; empty: nothing is
    ever forgotten.
    """
    pin_user_messages: bool = False
    """Whether the user's messages are never forgotten, as the contract and the goal are not."""
    summary_model: ModelSettings | None = None
    """The model that sums up views and groups at level 2; None: the job's own, unless that is a
    script; ``NO_MODEL``: none.
    """
    urls: tuple[str, ...] = ()
    """The web pages that views may show, as ``UrlRule`` reads them: URLs beneath which all are, or
    hosts (``docs.python.org``).
    """
    projection: ProjectionPolicy = ProjectionPolicy.AUTO
    """Whether views that changed are shown anew at their old places, or told of further down."""
    encoding: str = DEFAULT_ENCODING
    """The tiktoken encoding that counts this job's tokens on every worker."""
    redact: Redaction = Redaction()
    """What is masked in what the job reads, beside the keys that always are."""
    check: ToolSpec | None = None
    """The function that gives the job's result a score, once it has succeeded."""
    spawn: Spawn | None = None
    """Whether it may start sub-jobs, and how many; None: it may not."""
    parent: str = ""
    """The job of the same batch that started it, if it is a sub-job."""

    @property
    def writer(self) -> ModelSettings | None:
        """The model that writes summaries of sources and groups, if one does."""
        if self.summary_model is not None:
            return None if self.summary_model.name == NO_MODEL else self.summary_model
        return self.model if self.model.script is None else None


class Limit(Spec):
    """How fast one account or tool may be called; None: not bounded."""

    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    concurrent: int | None = Field(default=None, ge=1)
    """Calls at a time, of each worker process."""


class Limits(Spec):
    """The limits of a batch, by patterns of models' names (``openai/*``) and by tools
    (``module:function``).
    """

    models: dict[str, Limit] = Field(default_factory=dict)
    tools: dict[str, Limit] = Field(default_factory=dict)


class BatchSpec(Spec):
    """The jobs of one jobs file."""

    batch: str
    concurrency: int = Field(default=DEFAULT_CONCURRENCY, ge=1)
    """How many of the jobs may be open at once."""
    store: str | None = None
    """The archive's URL; None for the one that the environment or the embedded stack gives."""
    budget: BatchBudget | None = None
    """What the jobs may spend together, beside what each may."""
    limits: Limits = Limits()
    """How fast models and tools may be called."""
    priority: int | None = Field(default=None, ge=1, le=5)
    """How early its limited calls come among those of other batches, 1 the earliest; None: 3."""
    on_finish: OnFinish | None = None
    """Who is told when a job, and when the batch, has ended."""
    jobs: SkipValidation[Sequence[JobSpec]]
    """In the file's order: a tuple, or what a file has packed that may have a million."""
