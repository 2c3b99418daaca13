"""Statements, executions and namespace diffs: the objects of docs/contract/executable-context.md
section 3.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from runtime.base.digests import digest_of
from runtime.base.values import Value


class StatementKind(StrEnum):
    """``python`` is written by the model; ``meta`` by the framework."""

    PYTHON = "python"
    META = "meta"


class Statement(Value):
    """The exact Python source of one turn. ``index`` counts from 1 and is the turn's number."""

    statement_id: str
    index: int
    timestamp: str
    source: str
    kind: StatementKind = StatementKind.PYTHON
    tags: dict[str, str] = Field(default_factory=dict)
    fingerprint: str = ""


class ExecutionStatus(StrEnum):
    """How an execution ended."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class ExceptionInfo(Value):
    """The exception that ended a statement. ``trace_summary`` is bounded text."""

    type: str
    message: str
    trace_summary: str = ""


class TypeInfo(Value):
    """A variable as the namespace listing shows it: type name, short repr, and length where it has
    one.

    ``digest`` is of all that it holds, and empty where the repr is all of it, or in records of
    releases that took no such digest. ``partial`` names what the digest does not cover.
    """

    type: str
    repr: str = ""
    size: int | None = None
    digest: str = ""
    partial: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, str, int | None, tuple[str, ...]]:
        """What tells one value from another: the repr of a set, which has its order, only where
        there is no digest.
        """
        return self.type, self.digest or self.repr, self.size, self.partial


class ChangeInfo(Value):
    """A variable that changed: what it was, what it is, and at which places within it, where these
    can be told.
    """

    before: TypeInfo
    after: TypeInfo
    paths: tuple[str, ...] = ()


class NamespaceDiff(Value):
    """Variables that a statement added, changed and deleted; changed is what holds anything else
    than before.
    """

    added: dict[str, TypeInfo] = Field(default_factory=dict)
    changed: dict[str, ChangeInfo] = Field(default_factory=dict)
    deleted: tuple[str, ...] = ()


class EffectInfo(Value):
    """One call that left the interpreter: what was asked and digests of the question and the
    answer.

    ``path`` is the file that it was about, cut if it is long; None for a tool.
    """

    kind: str
    name: str
    request_digest: str
    result_digest: str
    error: str | None = None
    path: str | None = None


class Cost(Value):
    """What an execution cost: two that do the same differ in it.

    ``time_ms`` is workflow time between start and end, so effects are in it. ``effects`` are the
    seconds that were worked for each, in their order; None where a record answered, or nobody told.
    """

    time_ms: int = 0
    effects: tuple[float | None, ...] = ()


class Artifact(Value):
    """A named output of a statement; ``finish`` produces the one called ``result``."""

    name: str
    digest: str


class Execution(Value):
    """One result of one statement.

    ``stdout`` and ``stderr`` are bounded, with a marker where text was left out; ``stdout_digest``
    is of the bounded text. ``unchecked`` tells that the type checker needed too much processor time
    for the statement, which ran all the same. ``ticks`` are the turns at which nodes were ticked
    last, of those that the statement asked: of a tick that brought nothing new there is no other
    record.
    """

    execution_id: str
    statement_id: str
    started_at: str
    ended_at: str
    status: ExecutionStatus
    stdout: str = ""
    stderr: str = ""
    exception: ExceptionInfo | None = None
    events: tuple[str, ...] = ()
    state_diff: NamespaceDiff = NamespaceDiff()
    namespace_digest: str = ""
    effects: tuple[EffectInfo, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    cost: Cost = Cost()
    unchecked: bool = False
    ticks: dict[str, int] = {}

    def archived(self) -> dict[str, Any]:
        """The form that goes into the next step: digests for texts that stand in that step's
        segments already.
        """
        archived = self.model_dump(mode="json", exclude_defaults=True, exclude={"stdout", "stderr"})
        if self.stdout:
            archived["stdout_digest"] = digest_of(self.stdout)
        if self.stderr:
            archived["stderr_digest"] = digest_of(self.stderr)
        return archived
