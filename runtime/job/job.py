"""The job between its turns' effects: what it knows, and the steps of a turn as methods
(docs/design.md section 3).

Pure: no clock (``now`` is given, in seconds since the epoch), no I/O. The workflow calls the
methods in order and carries out what they ask for; a plain loop can do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from runtime.base.spec.models import JobSpec
from runtime.base.spec.servers import ServerListing
from runtime.base.values import Failed, ModelReply, StepRef, fields_of
from runtime.context.contract import contract_text
from runtime.context.feed import Delta
from runtime.context.graph import ContextGraph
from runtime.context.interim import Interim
from runtime.context.payloads import Applied
from runtime.context.sources import ReadRequest, ReadResult
from runtime.context.sub_job_end import SubJobEnd
from runtime.history.content import text_content
from runtime.history.events import (
    ActionEvent,
    AgentErrorEvent,
    CondensationRequest,
    Event,
    MessageEvent,
    MessageSource,
    MethodCalled,
    ObservationEvent,
    RequestSource,
    StatementExecuted,
)
from runtime.history.log import EventLog
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.executions import Execution, ExecutionStatus
from runtime.interpreter.session import Session
from runtime.interpreter.spawning import SpawnRequest, Wish
from runtime.job.condensed import CondensationOutcome
from runtime.job.condensing import Condensing, SavedCondensing, SummaryTask
from runtime.job.desk import Desk, SavedDesk
from runtime.job.fitting import Fitter, SavedFitter
from runtime.job.happenings import Happenings, SavedHappenings
from runtime.job.ledger import Ledger, SavedLedger
from runtime.job.made import result_content
from runtime.job.pacing import room_for
from runtime.job.places import LEAST_HORIZON, Places
from runtime.job.results import NOBODY_THERE, execution_text
from runtime.job.rewritten import cause_in
from runtime.job.sleeping import SavedSleeping, Sleeping
from runtime.job.statement import JobStatement
from runtime.job.stops import BAD_REPLIES, BudgetSpent, JobStatus, Stop
from runtime.job.sub_jobs import SubJob, SubJobs
from runtime.job.surface import Surface
from runtime.projection.project import TailPart
from runtime.projection.replies import ParsedReply, parse_reply, short
from runtime.projection.segments import (
    Digests,
    LayoutDelta,
    Segment,
    SegmentKind,
    delta_from,
    reply_segment,
)

NONE_FAILED = Failed()


@dataclass(frozen=True)
class Prompt:
    """One turn's prompt: its layout, the delta that makes it from the last one, and what the step
    records beside it.

    ``digests`` are those of the layout's segments. ``moved`` says why it does not begin as the last
    one, if so. ``suffix`` tells projections of the same turn apart, after the provider found one
    too long. ``told`` is how much of the ledger's background spending ``interim`` tells.
    """

    layout: tuple[Segment, ...]
    digests: tuple[str, ...]
    delta: LayoutDelta
    execution: dict[str, Any] | None
    nodes: tuple[dict[str, Any], ...]
    condensations: tuple[CondensationOutcome, ...]
    suffix: str
    interim: Interim
    moved: str = ""
    told: int = 0
    events: tuple[dict[str, Any], ...] = ()


class SavedJob(
    SavedDesk, SavedLedger, SavedFitter, SavedCondensing, SavedSleeping, SavedHappenings
):
    """What a checkpoint has of a job after ``turn`` turns."""

    last_statement: str
    execution: Execution | None = None
    bad_replies: tuple[str, ...] = ()
    event_count: int = 0


class Job:
    """The state of one job.

    ``key`` seeds the interpreter's random numbers; ``count`` counts tokens.
    """

    def __init__(
        self,
        spec: JobSpec,
        *,
        key: str,
        started: float,
        count: Callable[[str], int],
        servers: tuple[ServerListing, ...] = (),
    ) -> None:
        self.desk = Desk(spec, key, count, servers)
        self.ledger = Ledger(spec.budget, started)
        self.condensing = Condensing(spec.condenser)
        self.fitter = Fitter(spec.context_tokens, self.condensing)
        self.sleeping = Sleeping()
        self.last_statement = ""
        self.execution: Execution | None = None
        self._settled = False
        self._called = True
        self._finished: Stop | None = None
        self._bad_replies: list[str] = []
        self._deltas: tuple[Delta, ...] = ()
        self._nodes: tuple[dict[str, Any], ...] = ()
        self._events = 0
        self.happenings = Happenings()
        self._projections = 0
        self._tick_at = started
        self._interim = Interim()
        self.limits: tuple[int, ...] = ()
        self._condense = False
        self._ended: tuple[SubJobEnd, ...] = ()
        self._own = ""
        self._digests = Digests()
        contract = contract_text(
            form=spec.form,
            tools=spec.tools,
            result_schema=spec.result,
            urls=spec.urls,
            writer=spec.writer is not None,
            servers=servers,
            writable=spec.writable,
            approvals=spec.approvals,
            spawn=spec.spawn,
        )
        # The first two events, in this order: the prompt begins with them, and both are never
        # forgotten.
        self._message(MessageSource.SYSTEM, contract)
        self._message(MessageSource.GOAL, spec.goal)

    # They are of the turn that begins next, or of an end, after which there is no checkpoint; or
    # spare work.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        (
            "_settled",
            "_called",
            "_finished",
            "_deltas",
            "_nodes",
            "_projections",
            "_tick_at",
            "_interim",
            "limits",
            "_condense",
            "_ended",
            "_own",
            "_digests",
        )
    )

    def saved(self) -> SavedJob:
        """For a checkpoint, between two turns: after ``record`` and before ``ingest``."""
        parts = (
            self.desk,
            self.ledger,
            self.fitter,
            self.condensing,
            self.sleeping,
            self.happenings,
        )
        return SavedJob(
            **fields_of(*(part.saved() for part in parts)),
            last_statement=self.last_statement,
            execution=self.execution,
            bad_replies=tuple(self._bad_replies),
            event_count=self._events,
        )

    def restore(self, saved: SavedJob) -> None:
        """As it was saved. Errors as ``Desk.restore``."""
        self.desk.restore(saved)
        self.ledger.restore(saved)
        self.fitter.restore(saved)
        self.condensing.restore(saved)
        self.sleeping.restore(saved)
        self.happenings.restore(saved)
        self.last_statement, self.execution = saved.last_statement, saved.execution
        self._bad_replies, self._events = list(saved.bad_replies), saved.event_count

    @property
    def spec(self) -> JobSpec:
        """The job's definition."""
        return self.desk.spec

    @property
    def key(self) -> str:
        """What seeds the interpreter's random numbers."""
        return self.desk.key

    @property
    def turn(self) -> int:
        """The turn under way, or the last; 0 before the first."""
        return self.desk.turn

    @property
    def turns(self) -> int:
        """How many turns have a reply: a job may end before the call of the last that began."""
        return self.turn if self._called else self.turn - 1

    @property
    def log(self) -> EventLog:
        """The conversation."""
        return self.desk.log

    @property
    def graph(self) -> ContextGraph:
        """The nodes."""
        return self.desk.graph

    @property
    def places(self) -> Places:
        """Where nodes stand in the prompt."""
        return self.desk.places

    @property
    def surface(self) -> Surface:
        """How nodes are shown."""
        return self.desk.surface

    @property
    def session(self) -> Session:
        """The interpreter between two statements."""
        return self.desk.session

    @property
    def replies(self) -> dict[int, Segment]:
        """The segments of the model's replies, by turn."""
        return self.desk.replies

    @property
    def shown(self) -> tuple[str, ...]:
        """The digests of the last prompt's segments."""
        return self.desk.shown

    def stop(self, now: float) -> Stop | None:
        """The job's end, if it has come."""
        if self._finished is not None:
            return self._finished
        if len(self._bad_replies) >= BAD_REPLIES:
            return Stop(JobStatus.FAILED, f"{BAD_REPLIES} replies in a row {self._bad_replies[-1]}")
        return self.ledger.stop(self.turn, now)

    def check_budget(self, now: float) -> None:
        """See that the turn under way may go on.

        Raises:
            BudgetSpent: if a budget is spent.
        """
        if (spent := self.ledger.stop(self.turn - 1, now)) is not None:
            raise BudgetSpent(spent.reason)

    def own_sub_jobs(self, own: str) -> None:
        """Know the sub-jobs that the job, which is ``own`` (``BATCH/JOB``), has started itself, and
        those of the job of which it is a fork that have ended.
        """
        self._own = own
        told = {
            one.job: one.end is not None
            for one in self.ledger.sub_jobs.known.values()
            if one.parent == own or one.end is not None
        }
        self.graph.know_sub_jobs(told)

    def spawned(self, one: SubJob) -> None:
        """A sub-job was started by the statement under way."""
        self.ledger.sub_jobs.add(one)
        self.own_sub_jobs(self._own)

    def forget_spawned(self, known: Mapping[str, SubJob]) -> None:
        """The statement that is taken back has started no sub-job: ``known`` were before it."""
        self.ledger.sub_jobs = SubJobs(dict(known))
        self.own_sub_jobs(self._own)

    def _lend(self, wish: Wish, *, exact: bool) -> SpawnRequest:
        """The question for a sub-job that a statement wishes for. ``Refused``, if it gets none."""
        assert self.spec.spawn is not None, "only then it is offered"
        ledger = self.ledger
        return ledger.sub_jobs.asked(wish, self.spec.spawn, ledger.lendable(self.turn), exact=exact)

    def room_for(self, messages: Sequence[str]) -> int:
        """How many of the ``messages`` that wait the next turn begins with."""
        return room_for(messages, self.desk.count, self.fitter.limit)

    def ingest(self, messages: Sequence[str], now: float, ended: Sequence[SubJobEnd] = ()) -> None:
        """Begin the next turn with the messages that arrived, and with the sub-jobs that
        ``ended``.
        """
        self.desk.turn += 1
        self._events = self._projections = 0
        self._interim = Interim()
        self._nodes = ()
        self.limits = ()
        self._condense = False
        self.condensing.begin_turn()
        self.ledger.begin_turn()
        self.places.begin_turn()
        self._settled = self._called = False
        if messages:
            # Somebody is there after all, and a text was an answer.
            self._bad_replies.clear()
        for text in messages:
            self._message(MessageSource.USER, text)
        # The step tells them, so that whoever follows it books them in the same turn.
        self._ended = tuple(ended)
        if ended:
            over = self.ledger.sub_jobs.end(ended)
            self.own_sub_jobs(self._own)
            self.graph.sub_jobs_ended(over, turn=self.turn)

    def hear(self, text: str) -> None:
        """A user's message that comes after the turn's tick."""
        self._message(MessageSource.USER, text)

    def add_deltas(self, deltas: tuple[Delta, ...]) -> None:
        """Show more in this turn's delta feed than the nodes' changes."""
        self._deltas += deltas

    @property
    def changed_nodes(self) -> tuple[dict[str, Any], ...]:
        """The states of the nodes that changed until this turn's tick."""
        return self._nodes

    def request_condensation(self, source: RequestSource) -> None:
        """Condense before the next model call."""
        # A model's wish comes with its statement, which a replay runs again. A user's is known from
        # the step alone.
        self._condense |= source is RequestSource.USER
        self._append(CondensationRequest(id=self.next_id(), turn=self.turn, source=source))

    def due_reads(self, now: float, also: Sequence[str] = ()) -> tuple[ReadRequest, ...]:
        """What a tick must read, with the views of ``also``.

        The tick's time is ``now``, however long the reading takes.
        """
        self._tick_at = now
        return self.graph.due_reads(turn=self.turn, now=now, also=also)

    def due_asleep(self, now: float, *, all_of_them: bool = False) -> tuple[ReadRequest, ...]:
        """What the sleeping job's tick at ``now`` must read."""
        return self.due_reads(
            now, also=self.sleeping.look(self.graph, now, all_of_them=all_of_them)
        )

    def tick_asleep(
        self,
        results: Sequence[ReadResult],
        now: float,
        *,
        marked: bool = False,
        repeated: bool = False,
        regrouped: bool = True,
    ) -> None:
        """A tick between two turns: what changed becomes events at once, and deltas when the job is
        awake.

        ``marked`` tells that it read a view which a mark called behind, ``regrouped`` whether a
        group that it recomputes is news. A ``repeated`` sleep ends as recorded.
        """
        before = self.graph.clock
        self.graph.apply_tick_asleep(
            results, turn=self.turn, now=self._tick_at, also=self.sleeping.looking
        )
        self._take_graph_events()
        news = marked or (regrouped and self.graph.regrouped_since(before))
        self.sleeping.ticked(self.graph, results, now, news=news, repeated=repeated)

    def recorded_payloads(self, interim: Interim) -> tuple[tuple[str, int, int], ...]:
        """What the tick that comes next, of the turn or of the sleep before it, applied in the
        record that is followed.
        """
        return (
            interim.payloads if self.sleeping.state is None else self.sleeping.payloads_of(interim)
        )

    def repeat_payloads(
        self,
        results: Sequence[ReadResult],
        interim: Interim,
        read_of: Mapping[tuple[int, int], str],
        now: float,
    ) -> None:
        """The first part of a tick as a record has it, with what its payloads had brought;
        ``read_of`` as in ``Background.repeat``.
        """
        applied = [
            Applied(obj_id=node, turn=turn, effect=effect)
            for node, turn, effect in self.recorded_payloads(interim)
        ]
        self.graph.background.repeat(results, applied, read_of, turn=self.turn, now=now)
        dropped = 0
        if self.sleeping.state is None:
            # What was dropped and spent is told of the turn and of all before it since the last.
            dropped = interim.dropped
            self.ledger.add_background(interim.usage, interim.cost_usd)
        self._landed(applied, dropped)

    def apply_payloads(self, now: float) -> None:
        """The first part of a tick, of the turn or of a sleeping job: what was prepared in the
        background.
        """
        background = self.graph.background
        before = background.tally
        applied = background.apply(turn=self.turn, now=now)
        dropped = (
            background.tally.stale + background.tally.superseded - before.stale - before.superseded
        )
        self._landed(applied, dropped)

    def _landed(self, applied: Sequence[Applied], dropped: int) -> None:
        if self.sleeping.state is not None:
            self.sleeping.landed(applied, dropped)
        else:
            self._interim = Interim(
                payloads=tuple((p.obj_id, p.turn, p.effect) for p in applied), dropped=dropped
            )

    def apply_tick(self, results: Sequence[ReadResult]) -> None:
        """The tick: readings, then dirty groups; what changed becomes events and deltas."""
        self.graph.apply_tick(results, turn=self.turn, now=self._tick_at)
        self._take_graph_events()
        self._deltas = (*self.sleeping.deltas, *self.graph.take_deltas())
        # The time is recorded only where some node goes by it: other ticks come to the same at any
        # time.
        landed, slept = self._interim, self.sleeping.take()
        payloads = {"payloads": landed.payloads, "dropped": landed.dropped + slept.dropped}
        self._interim = slept.model_copy(
            update={"at": self._tick_at if self.graph.goes_by_time else None, **payloads}
        )
        self._nodes = self.graph.changed_states()

    def project(self, now: float, *, cents: bool = True) -> Prompt | SummaryTask:
        """This turn's prompt, within the context budget; or a summary that must be written before
        it can be made. ``cents``: its budget line tells parts of cents.
        """
        # A turn may be projected twice, where a provider found the prompt too long: what was
        # decided and told for the first holds for the second.
        if not self._settled:
            self._settle()
        budget_line = self.ledger.spending(self.turn, now).line(cents=cents)
        layout = self.fitter.fit(self.desk, lambda: self._tail(budget_line))
        if isinstance(layout, SummaryTask):
            return layout
        self._projections += 1
        previous = self.replies.get(self.turn - 1)
        usage, cost = self.ledger.to_tell()
        before = {
            "usage": usage,
            "cost_usd": cost,
            "condense": self._condense,
            "limits": self.limits,
            "ended": self._ended,
        }
        digests = self._digests.of(layout)
        return Prompt(
            layout=layout,
            digests=digests,
            delta=delta_from(self.shown, previous, layout, digests),
            execution=self.execution.archived() if self.execution is not None else None,
            nodes=self._nodes,
            condensations=self.condensing.taken,
            suffix="" if self._projections == 1 else f"-{self._projections}",
            interim=self._interim.model_copy(update=before),
            moved=self.places.why,
            told=len(self.ledger.untold),
            events=self.happenings.events,
        )

    def _tail(self, budget_line: str) -> tuple[TailPart, ...]:
        """The prompt's tail as it is now: what was dropped may change while the prompt is made."""
        parts = self.surface.tail(self._deltas, budget_line)
        dropped = self.condensing.dropped.line()
        return (TailPart(SegmentKind.MARK, "tail", dropped), *parts) if dropped else parts

    def _settle(self) -> None:
        """Decide, once a turn, which views are shown anew at their places and which changes are
        told further down.
        """
        self._settled = True
        view = self.log.view
        self.surface.look(view, self.turn)
        horizon = min(self.spec.budget.turns - self.turn, max(LEAST_HORIZON, self.turn))
        self.places.settle(
            self.surface,
            lambda: self.desk.projector.standing(view, self.replies, self.surface),
            horizon,
            self._tell,
        )

    def _tell(self, text: str) -> str:
        """Append a message of the framework; returns its event's id."""
        return self._message(MessageSource.FRAMEWORK, text)

    def refused(self, words: str) -> None:
        """Project smaller from now on, since a provider found the prompt too long, and said
        ``words``.
        """
        self.limited(self.fitter.learned(words))

    def limited(self, limit: int) -> None:
        """Project to at most ``limit`` tokens from now on, since a provider found the prompt too
        long.
        """
        self.fitter.refused(limit)
        self.limits += (limit,)

    def summarised(
        self, reply: ModelReply | str, step: StepRef | None = None, failed: Failed = NONE_FAILED
    ) -> None:
        """Go on with the summary that was waited for, archived at ``step``; or with why there is
        none, and what that cost.
        """
        if isinstance(reply, ModelReply):
            self.ledger.add(
                reply.usage + reply.failed.usage, reply.cost_usd + reply.failed.cost_usd
            )
        else:
            self.ledger.add_background(failed.usage, failed.cost_usd)
        self.condensing.summarised(self.desk, reply, step)

    def called(self, prompt: Prompt, reply: ModelReply) -> None:
        """Book the call, and take the prompt as what the model has seen."""
        self._called = True
        self.desk.shown = prompt.digests
        # The call's step has both by now; told once more, they would stand in the next one too.
        self.execution = None
        self.happenings.clear()
        self.replies[self.turn] = reply_segment(
            turn=self.turn,
            text=reply.text,
            tool_calls=reply.tool_calls,
            thinking=reply.thinking,
            tokens=reply.tokens,
        )
        self.ledger.add_failed(reply.failed)
        self.ledger.add_call(reply.usage, reply.cost_usd)
        self.ledger.told(prompt.told)
        self.fitter.called(reply.usage)

    def receive(
        self,
        reply: ModelReply,
        now: float,
        dialect: Dialect = Dialect.LATEST,
        *,
        exact: bool = True,
    ) -> JobStatement | None:
        """The statement that the reply asks for; ``exact`` is as in ``SubJobs.asked``.

        Without one, the model is told what is wrong or that nobody is there.
        """
        parsed = parse_reply(
            reply.text, reply.tool_calls, reply.finish_reason, reply.refusal, self.spec.form
        )
        if parsed.problem is not None:
            self._bad_replies.append(f"could not be used; the last: {parsed.problem}")
            self._refuse(reply, parsed.problem)
            return None
        if parsed.statement is None:
            self._bad_replies.append(f"held no statement; the last: {short(reply.text.strip())}")
            self._message(MessageSource.AGENT, reply.text)
            self._message(MessageSource.FRAMEWORK, NOBODY_THERE)
            return None
        # Three in a row count, so one statement begins the count anew.
        self._bad_replies.clear()
        self.last_statement = parsed.statement
        self._append(self._action(reply, parsed))
        lend = None if self.spec.spawn is None else partial(self._lend, exact=exact)
        return JobStatement(self.desk, parsed.statement, parsed.tool_call_id, now, lend, dialect)

    def record(self, statement: JobStatement, now: float, asleep: float | None = None) -> None:
        """Append the statement's execution and its events; a ``finish`` in a statement that ended
        well ends the job. ``asleep``: a sleep that it asked for has begun then, and not ``now``.
        """
        execution, views = statement.close(now)
        self.desk.session = statement.session
        self.surface.names = self.session.names.handles
        self.graph.learn_names(self.surface.names)
        # After the names are known: what no variable holds is out of sight.
        self.graph.pause_out_of_sight(turn=self.turn)
        before = self.happenings.last
        self._take_graph_events()
        execution = execution.model_copy(update={"events": self.happenings.since(before)})
        # Only views that something holds get a place; a result is never rewritten for the others.
        held = frozenset(self.surface.names.values())
        content = result_content(
            execution_text(execution, self.turn),
            views,
            lambda v: v in held or self.surface.is_pinned(v),
        )
        self._append(
            StatementExecuted(
                id=self.next_id(),
                turn=self.turn,
                statement_id=execution.statement_id,
                execution_id=execution.execution_id,
                status=execution.status,
            )
        )
        self._append(
            ObservationEvent(
                id=self.next_id(),
                turn=self.turn,
                tool_call_id=statement.tool_call_id,
                content=content,
            )
        )
        self.execution = execution
        if statement.asked_to_condense:
            self.request_condensation(RequestSource.MODEL)
        # Taken whatever became of the statement: a failed one's waits must not be found by the
        # next.
        if (waits := self.graph.take_waits()) and execution.status is ExecutionStatus.OK:
            self.sleeping.fall_asleep(self.graph, waits, now if asleep is None else asleep)
        if (finished := statement.finished()) is not None:
            self._finished = Stop(
                JobStatus.SUCCEEDED, "finished", finished.result, patch=finished.patch
            )

    def closing(self) -> tuple[dict[str, Any] | None, tuple[dict[str, Any], ...]]:
        """The last statement's execution and the nodes it changed, which no further step will
        record.
        """
        execution = (
            self.execution.model_dump(mode="json", exclude_defaults=True)
            if self.execution
            else None
        )
        # What a turn's tick changed stands in its step, and a turn without a call has none.
        ticked = () if self._called else self._nodes
        changed = self.graph.changed_states()
        nodes = {state["obj_id"]: state for state in (*ticked, *changed)}
        return execution, tuple(nodes.values())

    def _refuse(self, reply: ModelReply, problem: str) -> None:
        """Show the model its reply, if it has anything to show, and what is wrong with it."""
        content = text_content(problem)
        # All calls, and an answer to each: providers refuse a prompt in which one is left open.
        for call in reply.tool_calls:
            self._append(
                ActionEvent(
                    id=self.next_id(),
                    turn=self.turn,
                    llm_response_id=self._response_id(reply),
                    tool_call_id=call.id,
                    thinking_blocks=reply.thinking,
                    text=reply.text,
                    tool_calls=reply.tool_calls,
                )
            )
        for call in reply.tool_calls:
            self._append(
                AgentErrorEvent(
                    id=self.next_id(), turn=self.turn, tool_call_id=call.id, content=content
                )
            )
        if reply.tool_calls:
            return
        if reply.text.strip():
            self._message(MessageSource.AGENT, reply.text)
        self._message(MessageSource.FRAMEWORK, problem)

    def _action(self, reply: ModelReply, parsed: ParsedReply) -> ActionEvent:
        return ActionEvent(
            id=self.next_id(),
            turn=self.turn,
            llm_response_id=self._response_id(reply),
            tool_call_id=parsed.tool_call_id,
            thinking_blocks=reply.thinking,
            source=parsed.statement or "",
            text=reply.text,
            tool_calls=reply.tool_calls,
        )

    def _response_id(self, reply: ModelReply) -> str:
        """The response an action belongs to.

        Providers reuse and omit ids, so the turn makes it unique.
        """
        return f"turn-{self.turn}:{reply.response_id}"

    def _message(self, source: MessageSource, text: str) -> str:
        event = MessageEvent(
            id=self.next_id(), turn=self.turn, source=source, content=text_content(text)
        )
        self._append(event)
        return event.id

    def _append(self, event: Event) -> None:
        self.log.append(event)

    def _take_graph_events(self) -> None:
        for event in self.graph.take_events(self.next_id):
            if isinstance(event, MethodCalled):
                self.surface.called(event.obj_id, event.method)
            if (cause := cause_in(event, self.surface.name)) is not None:
                self.places.changed(*cause)
            self._append(event)
            self.happenings.add(event)

    def next_id(self) -> str:
        """A new event's id, unique in the job: the turn and a number in it."""
        self._events += 1
        return f"{self.turn}.{self._events}"
