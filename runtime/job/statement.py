"""One statement of a job: its run, its effects, and what it leaves
(docs/contract/executable-context.md section 3).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from runtime.base.digests import digest_of
from runtime.base.effect_classes import OUTCOME_UNKNOWN
from runtime.base.redaction.computed import without_keys
from runtime.base.values import Value
from runtime.context import api
from runtime.context.contract import any_once, type_stubs
from runtime.context.own_changes import OwnChanges
from runtime.interpreter import namespace, output
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.executions import (
    Artifact,
    Cost,
    EffectInfo,
    Execution,
    ExecutionStatus,
    Statement,
)
from runtime.interpreter.host import Answer, Effect, EffectKind
from runtime.interpreter.job_host import Finished, JobHost
from runtime.interpreter.run import StatementRun, Stretch, Verdict, VerdictStatus
from runtime.interpreter.session import Session
from runtime.interpreter.spawning import Lend
from runtime.interpreter.verdicts import Checked
from runtime.job.desk import Desk

PATH_CHARS = 200
"""Characters of a file's name that is told of an effect, which stands in histories."""


class JobStatement:
    """A statement between its stretches and effects. ``now`` is workflow time in seconds, ``lend``
    has a budget for a sub-job (None: it may start none).
    """

    def __init__(
        self,
        desk: Desk,
        source: str,
        tool_call_id: str | None,
        now: float,
        lend: Lend | None = None,
        dialect: Dialect = Dialect.LATEST,
    ) -> None:
        self._desk = desk
        self._lend = lend
        self.dialect = dialect
        self.tool_call_id = tool_call_id
        self.statement = Statement(
            statement_id=f"s{desk.turn}",
            index=desk.turn,
            timestamp=_iso(now),
            source=source,
            fingerprint=digest_of(source),
        )
        self.effects: list[EffectInfo] = []
        self._worked: list[float | None] = []
        self._started = now
        # A verdict that takes the statement back takes its nodes back too.
        self._before = desk.graph.snapshot()
        self._aborted = False
        self._version = desk.workspace
        self._host = _host(desk, now, lend, dialect)
        self._run = _run(desk, source, self._host, dialect, spawn=lend is not None)

    def checks(self, bounded: Callable[[], bool]) -> None:
        """Whether its checks by schemas are bounded, asked where one refuses something."""
        self._host.bounded = bounded

    def computes(self, bounded: Callable[[], bool]) -> None:
        """Whether what functions of the standard library make is bounded, asked where one fails."""
        self._host.bounded_functions = bounded

    def follows(self, recorded: Mapping[str, Any] | None) -> None:
        """It is of a record, in which it came to the execution ``recorded``, if that is known."""
        self._host.known_ticks = (recorded or {}).get("ticks", {})

    def advance(self, answer: Answer | None, recorded: Verdict | None = None) -> Stretch:
        """Run the next stretch; ``recorded`` is its ok verdict when it is replayed."""
        return self._run.advance(answer, recorded)

    def settle(self, verdict: Verdict) -> None:
        """Take a stretch's durable verdict; one that ends the statement takes the nodes back
        too.
        """
        self._run.settle(verdict)
        if verdict.status is not VerdictStatus.OK:
            self._aborted = True
            # What the statement made, handed in and asked for is gone with it.
            self._host.touched.clear()
            self._host.ticks.clear()
            self._host.finished = None
            self._host.asked_to_condense = False
            self._take_back()

    def by(self, dialect: Dialect) -> JobStatement:
        """The same statement by other rules, from where this one began: what this one did is taken
        back.
        """
        self._take_back()
        source, now = self.statement.source, self._started
        return JobStatement(self._desk, source, self.tool_call_id, now, self._lend, dialect)

    def _take_back(self) -> None:
        """Have the nodes and the files as they were before."""
        self._desk.graph.restore(self._before)
        self._desk.workspace = self._version

    def answered(self, effect: Effect, result: Value, seconds: float | None = None) -> Answer:
        """The answer that resumes the statement, from an effect's result, for which was worked so
        many ``seconds``.
        """
        path = getattr(effect.request, "path", None)
        told = result.model_dump(mode="json")
        if effect.kind is EffectKind.SPAWN:
            # What was refused has none.
            path = told.get("job")
        if effect.kind is EffectKind.CHANGE:
            # At once, not at the end: the next effect of the statement starts from these files.
            self._desk.workspace = told["version"]
            if effect.request.operation == "sh" and isinstance(told.get("value"), dict):
                # Two runs of one command differ in it, and in nothing that counts.
                told["value"].pop("seconds", None)
            self._desk.graph.files_changed(OwnChanges.told(told), turn=self._desk.turn)
        # Digests alone: executions stand in the history, results with their effects in the archive.
        self.effects.append(
            EffectInfo(
                kind=effect.kind,
                name=effect.name,
                request_digest=effect.digest,
                result_digest=digest_of(told),
                error=getattr(result, "error_type", None),
                path=None if path is None else path[:PATH_CHARS],
            )
        )
        self._worked.append(seconds)
        return self._host.answered(effect, result)

    @property
    def ended(self) -> bool:
        """Whether no stretch follows."""
        return self._run.finished

    @property
    def session(self) -> Session:
        """The interpreter after the statement."""
        if self._run.session is None:
            raise RuntimeError(f"{self.statement.statement_id} has not ended")
        return self._run.session

    def finished(self) -> Finished | None:
        """What ``finish`` was given, if the statement called it and ended without an exception."""
        return self._host.finished if self._run.exception is None else None

    @property
    def asked_to_condense(self) -> bool:
        """Whether the statement asked that older turns be condensed."""
        return self._host.asked_to_condense

    def close(self, now: float) -> tuple[Execution, tuple[str, ...]]:
        """The execution, and the views that the statement made, in order."""
        run, result = self._run, self.finished()
        execution = Execution(
            execution_id=f"e{self._desk.turn}.1",
            statement_id=self.statement.statement_id,
            started_at=_iso(self._started),
            ended_at=_iso(now),
            status=_status(run, aborted=self._aborted),
            unchecked=run.checked is Checked.GAVE_UP,
            ticks=dict(self._host.ticks),
            stdout=run.stdout(),
            stderr=run.stderr(),
            exception=run.exception,
            state_diff=namespace.diff(run.before.names, self.session.names, run.paths),
            namespace_digest=self.session.names.digest,
            effects=tuple(self.effects),
            artifacts=(
                (Artifact(name="result", digest=digest_of(result.result)),)
                if result is not None
                else ()
            ),
            cost=Cost(time_ms=int((now - self._started) * 1000), effects=tuple(self._worked)),
        )
        # All that is told of a statement is made here: what it printed, raised and holds.
        told = execution.model_dump()
        masked = without_keys(told)
        if masked is not told:
            execution = Execution.model_validate(masked)
        return execution, tuple(self._host.touched)


def _host(desk: Desk, now: float, lend: Lend | None, dialect: Dialect) -> JobHost:
    """What a statement on this desk calls."""
    return JobHost(
        graph=desk.graph,
        tools=frozenset(tool.name for tool in desk.spec.tools),
        servers={server.name: server for server in desk.servers},
        result_schema=desk.spec.result,
        turn=desk.turn,
        now=now,
        outputs=desk.outputs if desk.spec.writable is not None else None,
        on_files=frozenset(tool.name for tool in desk.spec.tools if tool.workspace),
        lend=lend,
        dialect=dialect,
    )


def _run(desk: Desk, source: str, host: JobHost, dialect: Dialect, *, spawn: bool) -> StatementRun:
    """The run of a statement, which goes on from the desk's session."""
    names = {tool.name for tool in desk.spec.tools}
    if any_once(desk.spec.tools, desk.servers):
        names.add(OUTCOME_UNKNOWN)
    servers = frozenset(server.name for server in desk.servers)
    hands = desk.spec.writable is not None
    return StatementRun(
        source=source,
        before=desk.session,
        host=host,
        stubs=type_stubs(desk.spec.tools, desk.servers, hands=hands, spawn=spawn),
        seed=desk.key,
        obj_ids=lambda: desk.graph.obj_ids,
        # Names that a statement cannot bind: without them the job could not go on.
        hidden=api.names(hands=hands, spawn=spawn) | names | servers,
        servers=servers,
        dialect=dialect,
        shown_chars=min(output.SHOWN_CHARS, desk.spec.context_tokens // 2),
    )


def _status(run: StatementRun, *, aborted: bool) -> ExecutionStatus:
    if run.exception is None:
        return ExecutionStatus.OK
    # A statement may raise that type itself: only a verdict makes it a timeout.
    timed_out = aborted and run.exception.type == "TimeoutError"
    return ExecutionStatus.TIMEOUT if timed_out else ExecutionStatus.ERROR


def _iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).isoformat()
