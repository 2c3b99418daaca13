"""What a job is run with: the keys of a job and of ``defaults``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runtime.base.spec.models import DEFAULT_CONTEXT_TOKENS
from runtime.jobsfile.written.approvals import WrittenApprovals
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_REDACTIONS, MAX_TOOLS, MAX_URLS
from runtime.jobsfile.written.budgets import WrittenBudget
from runtime.jobsfile.written.condensers import Condensers, WrittenCondenser
from runtime.jobsfile.written.models import WrittenModel
from runtime.jobsfile.written.patterns import SERVER_PATTERN, TARGET_PATTERN, VARIABLE_PATTERN
from runtime.jobsfile.written.redaction import WrittenRedaction
from runtime.jobsfile.written.retry import WrittenRetry
from runtime.jobsfile.written.sections import WrittenSections
from runtime.jobsfile.written.servers import WrittenServer
from runtime.jobsfile.written.spawn import WrittenSpawn
from runtime.jobsfile.written.values import Url
from runtime.jobsfile.written.workspace import WrittenWorkspace

_NO_BUDGET = WrittenBudget()
_NO_RETRY = WrittenRetry()
_NO_SECTIONS = WrittenSections()
_NO_APPROVALS = WrittenApprovals()
_NO_REDACTION = WrittenRedaction()
"""One each for all jobs that leave them out: a default is copied for each."""


class WrittenSettings(Written):
    """What a job is run with; the same keys are allowed in ``defaults`` and in each job."""

    model: WrittenModel | None = Field(
        default=None,
        description=(
            "The model; a job without one takes the default one, and one of the two is needed."
        ),
    )
    form: Literal["auto", "tool", "script"] = Field(
        default="auto",
        description=(
            "How the model hands over its statement: a native tool call, or a script block in its"
            " text. auto is tool."
        ),
    )
    budget: WrittenBudget = Field(
        default_factory=lambda: _NO_BUDGET, description="What the job may spend."
    )
    retry: WrittenRetry = Field(
        default_factory=lambda: _NO_RETRY, description="How long a model call is patient."
    )
    context_tokens: int = Field(
        default=DEFAULT_CONTEXT_TOKENS,
        ge=1_000,
        le=10_000_000,
        description="The size to which prompts are projected, in tokens.",
    )
    sections: WrittenSections = Field(
        default_factory=lambda: _NO_SECTIONS,
        description="The most tokens that the parts of a prompt may have.",
    )
    condenser: Condensers = Field(
        default=[WrittenCondenser(kind="auto")],
        description=(
            "How the job makes room when its prompt grows too large: a condenser, or a list of"
            " which the first that has an answer is taken."
        ),
    )
    pin_user_messages: bool = Field(
        default=False,
        description="Whether messages sent to the job are never forgotten, as its goal is not.",
    )
    projection: Literal["auto", "inline", "append"] = Field(
        default="auto",
        description=(
            "What becomes of a view that changed: shown anew where it stands (inline), told of"
            " further down, so that the provider's cache holds (append), or whichever of the two"
            " costs less (auto)."
        ),
    )
    summary_model: WrittenModel | None = Field(
        default=None,
        description=(
            "The model that sums up views and groups at level of detail 2, in the background; a"
            " cheaper one will do. The job's own if left out, and none for a scripted one. 'none':"
            " nothing is summed up, the structure is shown instead."
        ),
    )
    urls: list[Url] = Field(
        default=[],
        max_length=MAX_URLS,
        description=(
            "Web pages that the job may view: URLs beneath which everything is allowed, or hosts"
            " such as docs.python.org, *.example.org or wiki.corp:8443, which mean https. Loopback"
            " and private addresses only where one is named, as http://localhost:8000 or 10.0.3.7."
            " None by default."
        ),
    )
    workspace: WrittenWorkspace | None = Field(
        default=None,
        description=(
            "A directory that the job may read, relative to the jobs file; or, as a mapping, a"
            " workspace of its own that it may change. A job without one takes the default one, and"
            " one of the two is needed."
        ),
    )
    tools: list[Annotated[str, Field(pattern=TARGET_PATTERN)]] = Field(
        default=[],
        max_length=MAX_TOOLS,
        description=(
            "Typed Python functions as module:function; modules are looked for beside the jobs file"
            " first. A job's list replaces the default one."
        ),
    )
    check: Annotated[str, Field(pattern=TARGET_PATTERN)] | None = Field(
        default=None,
        description=(
            "A typed Python function of a result and of the directory of the job's files, as"
            " module:function, that gives the result of a job that succeeded a score: a number, or"
            " {'score': a number, 'remarks': text}. It is looked for and run as a tool is."
        ),
    )
    secrets: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description=(
            "Names of the worker's environment variables that these tools are given; their values"
            " are masked in what comes back. A job's list replaces the default one."
        ),
    )
    mcp: dict[Annotated[str, Field(pattern=SERVER_PATTERN)], WrittenServer] = Field(
        default={},
        max_length=8,
        description=(
            "MCP servers, by the names that statements know them by: docs.search(query='x')"
            " calls the tool search of docs. A job's mapping replaces the default one."
        ),
    )
    spawn: WrittenSpawn | None = Field(
        default=None,
        description=(
            "Lets statements start sub-jobs: spawn(goal, ...). A sub-job is a job of the same"
            " batch, with a budget out of its job's. null: none, also where the defaults allow"
            " some."
        ),
    )
    approvals: WrittenApprovals = Field(
        default_factory=lambda: _NO_APPROVALS,
        description=(
            "Which calls wait for a person's approval. A job's own replaces the default one."
        ),
    )
    redact: WrittenRedaction = Field(
        default_factory=lambda: _NO_REDACTION,
        description=(
            "What is masked in all that the job reads. A job's own replaces the default one."
        ),
    )
    result: dict[str, Any] | None = Field(
        default=None,
        description=(
            "The JSON Schema that the value given to finish(...) must satisfy; null for any value."
            " It refers to nothing outside itself; its patterns are RE2's."
        ),
    )
