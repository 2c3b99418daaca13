"""``JobWorkflow``: one durable agent job. ``run`` reads like DESIGN.md section 3; each word is a method of that name."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.contracts import (
        FileCall,
        FileCallResult,
        JobBegin,
        JobEnd,
        ReadBatch,
        ReadBatchResult,
        SummaryCall,
        ToolRequest,
        ToolResult,
        TurnCall,
        TurnReply,
    )
    from activities.verdicts import record_verdict
    from runtime.history.events import RequestSource
    from runtime.interpreter.host import Answer, Effect, EffectKind
    from runtime.interpreter.run import InterpreterDrift, Stretch, VerdictStatus
    from runtime.job.condensing import SummaryTask
    from runtime.job.job import Job, Prompt
    from runtime.job.statement import JobStatement
    from runtime.job.stops import BudgetSpent, JobFailed, JobStatus, Stop
    from runtime.spec.models import ModelSettings
    from runtime.tokens import encoding
    from runtime.values import StepRef
    from workflows.messages import JobOrder, JobOutcome, JobProgress

HEARTBEAT = timedelta(seconds=5)
"""How long a worker may be silent before its activity is given to another."""

CALL_LIMIT = timedelta(hours=1)
READ_LIMIT = timedelta(minutes=2)
TOOL_LIMIT = timedelta(hours=6)
WINDOW_EXCEEDED = "ContextWindowExceeded"
_PATIENT = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60))

SUMMARY_LIMIT = timedelta(minutes=20)
_SOME_PATIENCE = RetryPolicy(
    initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60), maximum_attempts=8
)
"""A job can go on without a summary, so it does not wait for one as long as for its next reply."""


@workflow.defn(name="JobWorkflow")
class JobWorkflow:
    """One run of one job."""

    @workflow.init
    def __init__(self, order: JobOrder) -> None:
        self.order = order
        self.job = Job(
            order.spec, key=str(order.key), started=workflow.time(), count=encoding(order.spec.encoding).count
        )
        self.inbox: list[str] = []
        self.condense_asked = False
        self.phase = "starting"
        self.parent: StepRef | None = None

    @workflow.run
    async def run(self, order: JobOrder) -> JobOutcome:
        """Turn after turn, until the model finishes, a budget is spent, or the job is cancelled."""
        try:
            await self.begin()
            while (stop := self.job.stop(workflow.time())) is None:
                self.ingest()
                await self.tick()
                reply = await self.call_model()
                statement = self.job.receive(reply, workflow.time())
                if statement is not None:
                    await self.execute(statement)
                    self.job.record(statement, workflow.time())
        except (ActivityError, JobFailed, BudgetSpent, asyncio.CancelledError) as error:
            stop = self.stopped_by(error)
        return await asyncio.shield(self.end(stop))

    @workflow.signal
    def message(self, text: str) -> None:
        """A user's message; the model sees it at its next turn."""
        self.inbox.append(text)

    @workflow.signal
    def condense(self) -> None:
        """A user's wish that older turns be forgotten behind a summary, before the next model call."""
        self.condense_asked = True

    @workflow.query
    def progress(self) -> JobProgress:
        """Where the job stands now."""
        job = self.job
        return JobProgress(
            status=JobStatus.RUNNING,
            turn=job.turn,
            phase=self.phase,
            usage=job.ledger.usage,
            cost_usd=job.ledger.cost_usd,
            statement=job.last_statement,
        )

    async def begin(self) -> None:
        """Archive the job's definition."""
        await workflow.execute_activity(
            "begin_job",
            JobBegin(key=self.order.key, definition=self.order.spec.model_dump(mode="json")),
            activity_id="begin",
            start_to_close_timeout=READ_LIMIT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=_PATIENT,
            summary="archive the definition",
        )

    def ingest(self) -> None:
        """Begin a turn with the messages that arrived."""
        arrived, self.inbox = self.inbox, []
        self.job.ingest(arrived, workflow.time())
        if self.condense_asked:
            self.condense_asked = False
            self.job.request_condensation(RequestSource.USER)

    async def tick(self) -> None:
        """Bring due nodes up to date: one activity for all that must be read, none if nothing must."""
        due = self.job.due_reads()
        results: tuple[Any, ...] = ()
        if due:
            self.phase = "reading"
            results = (await self.read(due, f"turn-{self.job.turn}-tick")).results
        self.job.apply_tick(results)

    async def call_model(self) -> TurnReply:
        """Project and call. A prompt that the provider finds too long is projected smaller, never the end of a job."""
        while True:
            prompt = await self.project()
            self.phase = "model"
            call = TurnCall(
                **self.call_fields(),
                layout=prompt.delta,
                model=self.model(),
                execution=prompt.execution,
                nodes=prompt.nodes,
                condensations=prompt.condensations,
            )
            try:
                reply: TurnReply = await workflow.execute_activity(
                    "call_model",
                    call,
                    result_type=TurnReply,
                    activity_id=f"turn-{self.job.turn}{prompt.suffix}",
                    start_to_close_timeout=CALL_LIMIT,
                    schedule_to_close_timeout=self.wall_left(),
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=_PATIENT,
                    summary=f"turn {self.job.turn}",
                )
            except ActivityError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.type == WINDOW_EXCEEDED:
                    self.job.refused(cause.message)
                    continue
                raise
            self.parent = reply.step
            self.job.called(prompt, reply)
            return reply

    async def project(self) -> Prompt:
        """This turn's prompt, after the summaries without which it would not fit."""
        while isinstance(made := self.job.project(workflow.time()), SummaryTask):
            await self.summarise(made)
            if (spent := self.job.ledger.stop(self.job.turn - 1, workflow.time())) is not None:
                raise BudgetSpent(spent.reason)
        return made

    async def summarise(self, task: SummaryTask) -> None:
        """Have a summary written. That there is none is an answer too: the condenser goes on without it."""
        self.phase = "condensing"
        call = SummaryCall(
            **self.call_fields(),
            name=task.name,
            layout=task.delta,
            prompt=task.request.form,
            model=self.model(task.model),
        )
        try:
            reply: TurnReply = await workflow.execute_activity(
                "summarise",
                call,
                result_type=TurnReply,
                activity_id=f"summary-{task.name}",
                start_to_close_timeout=CALL_LIMIT,
                schedule_to_close_timeout=min(self.wall_left(), SUMMARY_LIMIT),
                heartbeat_timeout=HEARTBEAT,
                retry_policy=_SOME_PATIENCE,
                summary=f"summary before turn {self.job.turn}",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self.job.summarised(cause_of(error))
        else:
            self.job.summarised(reply, reply.step)

    async def execute(self, statement: JobStatement) -> None:
        """Run a statement: stretches between effects, each with a durable verdict."""
        self.phase = "executing"
        answer: Answer | None = None
        while True:
            effect = await self.durable(statement, answer)
            if effect is None:
                return
            answer = statement.answered(effect, await self.perform(effect, len(statement.effects)))

    async def durable(self, statement: JobStatement, answer: Answer | None) -> Effect | None:
        """One stretch. Live: run, then record its verdict. Replaying: read the recorded verdict first, and obey it."""
        while True:
            stretch: Stretch | None = None
            if not workflow.unsafe.is_replaying():
                stretch = statement.advance(answer)
            verdict = await workflow.execute_local_activity(
                record_verdict,
                stretch.verdict if stretch is not None else None,
                start_to_close_timeout=timedelta(seconds=30),
            )
            if verdict is None:
                continue
            if verdict.status is VerdictStatus.OK and stretch is None:
                stretch = statement.advance(answer, verdict)
                if stretch.verdict.digest != verdict.digest:
                    raise InterpreterDrift(
                        f"turn {self.job.turn}: the replayed statement gave {stretch.verdict.status} {stretch.verdict.digest}, "
                        f"recorded was {verdict.digest}"
                    )
            statement.settle(verdict)
            return stretch.effect if stretch is not None and verdict.status is VerdictStatus.OK else None

    async def perform(self, effect: Effect, number: int) -> Any:
        """Carry out the statement's effect ``number`` as an activity."""
        name = f"turn-{self.job.turn}-effect-{number}"
        request = effect.request
        match effect.kind:
            case EffectKind.READ:
                return (await self.read((request,), name)).results[0]
            case EffectKind.FILE:
                return await workflow.execute_activity(
                    "file_call",
                    FileCall(
                        workspace=self.order.spec.workspace,
                        operation=request.operation,
                        path=request.path,
                        args=request.args,
                        kwargs=request.kwargs,
                        redact=self.order.spec.redact,
                    ),
                    result_type=FileCallResult,
                    activity_id=name,
                    start_to_close_timeout=READ_LIMIT,
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=_PATIENT,
                    summary=f"{request.operation} {request.path}"[:120],
                )
            case EffectKind.TOOL:
                return await workflow.execute_activity(
                    "call_tool",
                    ToolRequest(
                        key=self.order.key,
                        turn=self.job.turn,
                        effect=number,
                        tool=self.tool_target(request.tool),
                        search_path=self.tool_path(request.tool),
                        args=request.args,
                        kwargs=request.kwargs,
                        redact=self.order.spec.redact,
                    ),
                    result_type=ToolResult,
                    activity_id=name,
                    start_to_close_timeout=TOOL_LIMIT,
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=_PATIENT,
                    summary=request.tool,
                )

    async def read(self, requests: tuple[Any, ...], activity_id: str) -> ReadBatchResult:
        """Read sources for nodes."""
        result: ReadBatchResult = await workflow.execute_activity(
            "read_sources",
            ReadBatch(
                workspace=self.order.spec.workspace,
                requests=requests,
                encoding=self.order.spec.encoding,
                redact=self.order.spec.redact,
            ),
            result_type=ReadBatchResult,
            activity_id=activity_id,
            start_to_close_timeout=READ_LIMIT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=_PATIENT,
            summary=f"read {len(requests)} source{'s' if len(requests) != 1 else ''}",
        )
        return result

    async def end(self, stop: Stop) -> JobOutcome:
        """Close the archive's chain and report."""
        self.phase = "ending"
        job = self.job
        execution, nodes = job.closing()
        end: StepRef = await workflow.execute_activity(
            "end_job",
            JobEnd(
                key=self.order.key,
                turn=job.turn,
                parent=self.parent,
                status=stop.status.value,
                reason=stop.reason,
                result=stop.result,
                usage=job.ledger.usage,
                cost_usd=job.ledger.cost_usd,
                execution=execution,
                nodes=nodes,
                condensations=job.condensing.taken,
            ),
            result_type=StepRef,
            activity_id="end",
            start_to_close_timeout=READ_LIMIT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=_PATIENT,
            summary=stop.status,
        )
        return JobOutcome(
            key=self.order.key,
            run=workflow.info().run_id,
            status=stop.status,
            reason=stop.reason,
            turns=job.turn,
            usage=job.ledger.usage,
            cost_usd=job.ledger.cost_usd,
            end=end,
        )

    def stopped_by(self, error: BaseException) -> Stop:
        """What an exception in a turn means for the job. Any other kind fails the workflow task, and is tried again."""
        if is_cancelled_exception(error):
            return Stop(JobStatus.CANCELLED, "cancelled")
        if isinstance(error, JobFailed):
            return Stop(JobStatus.FAILED, str(error))
        if isinstance(error, BudgetSpent):
            return Stop(JobStatus.BUDGET, str(error))
        last = f"turn {self.job.turn}: {cause_of(error)}"
        # The server gives up as soon as the next attempt would come too late, not when the time is over.
        given_up = isinstance(error, ActivityError) and error.retry_state is RetryState.TIMEOUT
        if given_up or self.job.ledger.wall_left(workflow.time()) <= 1:
            return Stop(JobStatus.BUDGET, f"{self.job.ledger.wall_reason()}; {last}")
        return Stop(JobStatus.FAILED, last)

    def call_fields(self) -> dict[str, Any]:
        """What each model call of the turn has in common."""
        spec = self.order.spec
        return {
            "key": self.order.key,
            "turn": self.job.turn,
            "parent": self.parent,
            "form": spec.form,
            "encoding": spec.encoding,
            "reset_event_id": workflow.info().get_current_history_length() + 1,
        }

    def wall_left(self) -> timedelta:
        """How long an activity may take before the wall budget is spent."""
        return timedelta(seconds=max(self.job.ledger.wall_left(workflow.time()), 1))

    def model(self, other: ModelSettings | None = None) -> dict[str, Any]:
        """What litellm is called with: the job's model, or the one that writes its summaries."""
        settings = other or self.order.spec.model
        return {"name": settings.name, **settings.options}

    def tool_target(self, name: str) -> str:
        """``module:function`` of a tool."""
        return next(tool.target for tool in self.order.spec.tools if tool.name == name)

    def tool_path(self, name: str) -> str:
        """Where a tool's module is looked for."""
        return next(tool.search_path for tool in self.order.spec.tools if tool.name == name)


def cause_of(error: BaseException) -> str:
    """An activity's error in its own words, with the name of its kind."""
    cause = error.cause if isinstance(error, ActivityError) else None
    if isinstance(cause, ApplicationError):
        return f"{cause.type}: {cause.message}" if cause.type else cause.message
    return str(cause or error)
