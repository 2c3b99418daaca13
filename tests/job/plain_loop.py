"""A job's loop with no Temporal: the same calls in the same order as ``workflows/job.py``, with a
history of what is durable.

Verdicts, replies, effects' results and ticks' readings are entries of the history, as JSON, as
Temporal would keep them. Given a history, the loop replays it first (verdicts are read before a
stretch runs, and obeyed) and goes on live where it ends. So a history cut anywhere stands for a
process that was killed there.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from activities.brief import brief_events, full_events
from activities.contracts import FileCall, FileCallResult, ReadBatch, ReadBatchResult, ToolResult
from activities.workspace import WorkspaceActivities
from runtime.base.digests import digest_of
from runtime.base.spec.models import Budget, JobSpec, ModelSettings, ToolSpec
from runtime.base.tokens import encoding
from runtime.base.values import ModelReply, ToolCall, Usage
from runtime.context.payloads import Preparation
from runtime.history.content import plain_text
from runtime.history.events import is_result
from runtime.interpreter.executions import Execution
from runtime.interpreter.host import Answer, Effect, EffectKind
from runtime.interpreter.pool import NoVerdict
from runtime.interpreter.run import InterpreterDrift, Verdict, VerdictStatus
from runtime.job.condensing import SummaryTask
from runtime.job.fitting import BAD_REQUEST
from runtime.job.job import Job
from runtime.job.statement import JobStatement
from runtime.job.stops import JobFailed, Stop
from runtime.projection.messages import messages_of
from runtime.projection.project import tokens_of
from runtime.projection.segments import LayoutDelta, Segment
from runtime.tools.marks import Marks
from runtime.tools.stubs import stub_line

M = TypeVar("M", bound=BaseModel)
Messages = list[dict[str, Any]]
Policy = Callable[[Messages], "str | ModelReply"]
Run = Callable[..., "PlainLoop"]
"""Runs statements given as texts to their end (a fixture)."""

START = 1_750_000_000.0
"""Workflow time at the beginning, in seconds since 1970; a turn takes a minute."""

TASKS = 5
"""A worker would go on; a test that comes to this has another fault than a busy machine."""

count = encoding("cl100k_base").count


class TooLong(Exception):
    """A policy raises this for a prompt that its provider finds too long."""


class Refused(Exception):
    """A policy raises this for a prompt that its provider refuses without saying why; the message
    is what it says.
    """


@dataclass(frozen=True)
class Entry:
    """One durable value: its kind, and its JSON."""

    kind: str
    value: str


@dataclass(frozen=True)
class TurnState:
    """All that a job was after a turn, as digests where it is long."""

    layout: tuple[str, ...]
    tokens: int
    nodes: Mapping[str, str]
    graph: str
    namespace: str
    variables: tuple[str, ...]
    handles: Mapping[str, str]
    events: str
    execution: str


def statements(*sources: str) -> Policy:
    """The policy that writes these statements one after the other, then finishes."""
    rest = iter(sources)
    return lambda _: next(rest, "finish(None)")


def tool_spec(function: Callable[..., Any]) -> ToolSpec:
    """The tool that ``function`` is to a statement."""
    stub = stub_line(function.__name__, inspect.signature(function, eval_str=True))
    return ToolSpec(
        name=function.__name__,
        target=f"here:{function.__name__}",
        search_path="/",
        stub=stub,
        effect=Marks.of(function).effect,
    )


def native(source: str, turn: int, text: str = "") -> ModelReply:
    """A reply that calls ``python`` natively."""
    call = ToolCall(id=f"call_{turn}", name="python", arguments=json.dumps({"code": source}))
    tokens = count(text) + count(source)
    return ModelReply(text=text, tool_calls=(call,), response_id=f"r{turn}", tokens=tokens)


@dataclass
class PlainLoop:
    """One job, run in this thread.

    ``between`` is called before each turn and puts the workspace's files into their state,
    ``meanwhile`` before each reading of a sleeping job, with the seconds it has slept since it
    began. ``summary`` is what a model writes when a condenser asks for a summary; without it the
    request fails. ``tasks`` of it may end without a verdict.
    """

    workspace: Path
    policy: Policy
    tools: Sequence[Callable[..., Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    messages: Mapping[int, Sequence[str]] = field(default_factory=dict)
    between: Callable[[int], None] = lambda turn: None
    meanwhile: Callable[[float], None] = lambda seconds: None
    summary: ModelReply | None = None
    history: list[Entry] = field(default_factory=list)
    turns: list[TurnState] = field(default_factory=list)
    prompts: list[Messages] = field(default_factory=list)
    layouts: list[tuple[Segment, ...]] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    happened: list[tuple[dict[str, Any], ...]] = field(default_factory=list)
    stop: Stop | None = None
    slept: float = 0.0
    tasks: int = TASKS
    failed_tasks: int = 0

    def __post_init__(self) -> None:
        spec: dict[str, Any] = {
            "id": "job",
            "goal": "Do the work.",
            "workspace": str(self.workspace),
            "tools": tuple(tool_spec(tool) for tool in self.tools),
            "model": ModelSettings(name="scripted/plain"),
            "budget": Budget(turns=1000, tokens=10**12, usd=1e9, wall_seconds=1e9),
        }
        self.job = Job(
            JobSpec(**{**spec, **self.options}), key="batch/job", started=START, count=count
        )
        self.files = WorkspaceActivities()
        self._at = 0

    @property
    def now(self) -> float:
        """Workflow time."""
        return START + 60.0 * self.job.turn + self.slept

    @property
    def replaying(self) -> bool:
        """Whether the history still holds the next durable value."""
        return self._at < len(self.history)

    def run(self) -> PlainLoop:
        """Turn after turn until the job ends.

        Where the interpreter had too little of the processor, it goes on as a workflow does: that
        task fails, and the next one replays the history.
        """
        while self.stop is None:
            try:
                while (stop := self.job.stop(self.now) or self.sleep()) is None:
                    self.turn()
                self.stop = stop
            except NoVerdict:
                self.failed_tasks += 1
                if self.failed_tasks == self.tasks:
                    raise
                vars(self).update(vars(self.again()) | {"failed_tasks": self.failed_tasks})
        return self

    def sleep(self) -> Stop | None:
        """A sleep, as ``Asleep.sleep`` has it; time passes at once, and nobody sends messages."""
        job, sleeping = self.job, self.job.sleeping
        if sleeping.state is not None:
            self._pass_time(
                max(sleeping.state.began - self.now, 0.0)
            )  # the statement took a second
            self._prepare_asleep()
        while (alarm := sleeping.alarm(job.graph)) is not None:
            if (stop := job.stop(self.now)) is not None:
                return stop
            if alarm > self.now:
                self._pass_time(min(alarm - self.now, job.ledger.time_left(self.now)))
                continue
            if sleeping.is_over(job.graph, self.now):
                continue
            self.meanwhile(self.slept)
            job.apply_payloads(self.now)
            due = job.due_asleep(self.now)
            results = (
                self._durable("asleep", ReadBatchResult, lambda due=due: self._read(due)).results
                if due
                else ()
            )  # type: ignore[misc]
            job.tick_asleep(results, self.now)
            self._prepare_asleep()
        return None

    def _pass_time(self, seconds: float) -> None:
        """Time that the job asked for."""
        self.slept += seconds
        self.job.ledger.work(seconds)

    def _prepare_asleep(self) -> None:
        """Begin what a sleeping job prepares, which is there at once."""
        job = self.job
        wanted = job.sleeping.to_prepare(job.graph)
        if wanted is not None:
            self._prepared(job.graph.background.begin(turn=job.turn, now=self.now, asleep=wanted))

    def _prepared(self, begun: Sequence[Preparation]) -> None:
        for preparation in begun:
            read = self._durable(
                "prepared", ReadBatchResult, lambda p=preparation: self._read((p.request,))
            )  # type: ignore[misc]
            self.job.graph.background.ready(preparation.payload_id, read.results[0], self.now)

    def turn(self) -> None:
        """One turn, as ``JobWorkflow.work`` has it."""
        job = self.job
        self.between(job.turn + 1)
        job.ingest(self.messages.get(job.turn + 1, ()), self.now)
        job.ledger.work(60.0)
        job.apply_payloads(self.now)
        due = job.due_reads(self.now)
        results = (
            self._durable("tick", ReadBatchResult, lambda: self._read(due)).results if due else ()
        )
        job.apply_tick(results)
        background = job.graph.background
        background.cancel()
        begun = background.begin(turn=job.turn, now=self.now)
        statement = job.receive(self._call(), self.now)
        if statement is not None:
            self._execute(statement)
            job.record(statement, self.now + 1)
            assert job.execution is not None
            self.executions.append(job.execution)
        background.cancel()
        self._prepared(begun)  # each ends when its turn does, if nobody has cancelled it
        self.turns.append(self._state())

    def again(self, entries: int | None = None, policy: Policy | None = None) -> PlainLoop:
        """The same job from the first ``entries`` of this one's history (all of them if None), not
        yet run.
        """
        return dataclasses.replace(
            self,
            history=self.history[:entries],
            policy=policy or self.policy,
            turns=[],
            prompts=[],
            layouts=[],
            executions=[],
            stop=None,
            slept=0.0,
        )

    def replayed(self) -> PlainLoop:
        """This loop, after a replay of its whole history came to the same states and the same
        end.
        """
        again = self.again().run()
        assert again.turns == self.turns
        assert again.executions == self.executions
        assert (again.stop, again.history) == (self.stop, self.history)
        return self

    def results(self) -> list[str]:
        """The texts that the model was given in answer to its replies, views left out."""
        answers = [event for event in self.job.log if is_result(event)]
        return [plain_text(event.content) for event in answers]

    def _call(self) -> ModelReply:
        job = self.job
        before = self.layouts[-1] if self.layouts else ()
        doubted: Refused | None = None
        while True:
            try:
                prompt = job.project(self.now)
            except JobFailed:
                if doubted is not None:
                    raise doubted from None
                raise
            if isinstance(prompt, SummaryTask):
                job.summarised(
                    self._durable("summary", _Answered, self._summary).reply
                    or "nobody writes summaries here"
                )
                continue
            sent = LayoutDelta.model_validate_json(prompt.delta.model_dump_json()).apply(
                before, job.replies.get(job.turn - 1)
            )
            assert [s.digest for s in sent] == [s.digest for s in prompt.layout], (
                "the delta makes another layout"
            )
            answered = self._durable(
                "reply", _Answered, functools.partial(self._ask, prompt.layout)
            )
            if answered.reply is not None:
                break
            if answered.refused is None:
                job.refused("too long")
            elif doubted is None and (limit := job.fitter.doubted(BAD_REQUEST)) is not None:
                job.limited(limit)
                doubted = Refused(answered.refused)
            else:
                raise Refused(answered.refused)
        short = json.loads(json.dumps(brief_events(prompt.events, job.turn, prompt.nodes)))
        assert full_events(short, job.turn, prompt.nodes) == prompt.events, (
            "the short form tells other events"
        )
        self.happened.append(prompt.events)
        job.called(prompt, answered.reply)
        self.layouts.append(prompt.layout)
        self.prompts.append(messages_of(prompt.layout))
        return answered.reply

    def _ask(self, layout: tuple[Segment, ...]) -> _Answered:
        try:
            said = self.policy(messages_of(layout))
        except TooLong:
            return _Answered(reply=None)
        except Refused as error:
            return _Answered(reply=None, refused=str(error))
        reply = said if isinstance(said, ModelReply) else native(said, self.job.turn)
        usage = Usage(prompt=tokens_of(layout), completion=reply.tokens)
        return _Answered(reply=reply.model_copy(update={"usage": usage}))

    def _summary(self) -> _Answered:
        return _Answered(reply=self.summary)

    def _execute(self, statement: JobStatement) -> None:
        answer: Answer | None = None
        while not statement.ended:
            effect = self._stretch(statement, answer)
            answer = None if effect is None else statement.answered(effect, self._perform(effect))

    def _stretch(self, statement: JobStatement, answer: Answer | None) -> Effect | None:
        stretch = None
        if self.replaying:
            verdict = self._durable("verdict", Verdict, _never)
            if verdict.status is VerdictStatus.OK:
                stretch = statement.advance(answer, verdict)
                if stretch.verdict.digest != verdict.digest:
                    raise InterpreterDrift(f"{stretch.verdict} is not {verdict}")
        else:
            stretch = statement.advance(answer)
            live = stretch.verdict
            verdict = self._durable("verdict", Verdict, lambda: live)
        statement.settle(verdict)
        return (
            stretch.effect if stretch is not None and verdict.status is VerdictStatus.OK else None
        )

    def _perform(self, effect: Effect) -> Any:
        request = effect.request
        match effect.kind:
            case EffectKind.READ:
                return self._durable(
                    "read", ReadBatchResult, lambda: self._read((request,))
                ).results[0]
            case EffectKind.FILE:
                call = FileCall(workspace=str(self.workspace), **request.model_dump())
                return self._durable(
                    "file", FileCallResult, lambda: self.files.file_call(_wire(FileCall, call))
                )
            case EffectKind.TOOL:
                tool = next(tool for tool in self.tools if tool.__name__ == request.tool)
                args, kwargs = json.loads(json.dumps([request.args, request.kwargs]))
                return self._durable("tool", ToolResult, lambda: _tool_result(tool, args, kwargs))

    def _read(self, requests: Sequence[Any]) -> ReadBatchResult:
        batch = ReadBatch(
            workspace=str(self.workspace), requests=tuple(requests), encoding="cl100k_base"
        )
        return self.files.read_sources(_wire(ReadBatch, batch))

    def _durable(self, kind: str, model: type[M], live: Callable[[], M]) -> M:
        if not self.replaying:
            self.history.append(Entry(kind, live().model_dump_json()))
        entry = self.history[self._at]
        self._at += 1
        assert entry.kind == kind, f"the history has a {entry.kind} where the job asks for a {kind}"
        return model.model_validate_json(entry.value)

    def _state(self) -> TurnState:
        job, layout = self.job, self.layouts[-1]
        return TurnState(
            layout=tuple(segment.digest for segment in layout),
            tokens=tokens_of(layout),
            nodes={obj_id: job.graph.digest(obj_id) for obj_id in job.graph.obj_ids},
            graph=digest_of(job.graph.dump()),
            namespace=job.session.names.digest,
            variables=tuple(job.session.names.variables),
            handles=dict(job.session.names.handles),
            events=digest_of([event.model_dump(mode="json") for event in job.log]),
            execution=digest_of(
                job.execution.model_dump(mode="json") if job.execution is not None else None
            ),
        )


class _Answered(BaseModel):
    """What the model call gave: a reply, or None for a prompt that was too long, or ``refused`` for
    whatever.
    """

    reply: ModelReply | None
    refused: str | None = None


def _never() -> Any:
    raise AssertionError("nothing is recorded here")


def _wire(model: type[M], value: M) -> M:
    return model.model_validate_json(value.model_dump_json())


def _tool_result(
    tool: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ToolResult:
    try:
        return ToolResult(value=json.loads(json.dumps(tool(*args, **kwargs))))
    except Exception as error:  # noqa: BLE001
        return ToolResult(error_type=type(error).__name__, error_message=str(error))
