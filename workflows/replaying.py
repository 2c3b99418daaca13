"""Replays within a run: what a reset run is to do, and following a record turn by turn (docs/design.md section 9).

A reset makes the server give the run another random seed. That callback is the only thing in a workflow that fires at a reset
point and nowhere else, also when the run is replayed later; so it opens the gate at which the run asks for its orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts import TurnReply
    from activities.record import (
        AfterRecord,
        Claim,
        ClaimQuestion,
        EffectName,
        Given,
        RecordedQuestion,
        RecordedTurn,
        ReplayMode,
        ReplayOrder,
    )
    from runtime.context.feed import Delta
    from runtime.interpreter.run import Verdict, VerdictStatus
    from runtime.interpreter.verdicts import Checked
    from runtime.job.divergence import Divergence, compare_events, compare_executions, compare_nodes, summed_up
    from runtime.job.statement import JobStatement
    from runtime.job.stops import JobFailed, JobStatus, Stop
    from workflows.limits import HEARTBEAT, LOCAL_LIMIT, PATIENT, READ_LIMIT, RECORD_TRIES

if TYPE_CHECKING:
    from workflows.job import JobWorkflow
    from workflows.messages import Origin


REFUSALS = frozenset({"TypeCheckError", "SyntaxError"})
"""Exceptions of statements that the type checker refused."""


class Replaying:
    """The replay that a run is part of, if it is one. ``order`` says how, ``record`` is the turn that is followed."""

    def __init__(self, flow: JobWorkflow) -> None:
        self._flow = flow
        self.order: ReplayOrder | None = None
        self.record: RecordedTurn | None = None
        self.divergences: tuple[Divergence, ...] = ()
        self.nodes: tuple[dict[str, Any], ...] | None = None
        self.nodes_at_end = False
        self.events: tuple[dict[str, Any], ...] | None = None
        self._next: ReplayOrder | None = None
        self._redone: tuple[int, dict[str, Any]] | None = None
        self._heard: list[str] = []
        self._told = False
        self._was_reset = False
        workflow.register_random_seed_callback(self._reset)

    def _reset(self, seed: int) -> None:
        self._was_reset = True

    def begin(self, origin: Origin | None) -> None:
        """Go on with what the run before was in, or begin as the fork's order says."""
        if origin is not None:
            self.divergences, self.nodes = origin.divergences, origin.nodes
            self.nodes_at_end = origin.nodes_at_end
            self.events = origin.events
            self._next = origin.replay
            self._take(origin.restore or origin.replay)

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run must know, as fields of its ``Origin``."""
        restoring = self.order is not None and self.order.mode is ReplayMode.RESTORE
        return {
            "restore": self.order if restoring else None,
            "replay": self._next if restoring else self.order,
            "divergences": self.divergences,
            "nodes": self.nodes,
            "nodes_at_end": self.nodes_at_end,
            "events": self.events,
        }

    async def gate(self) -> None:
        """At a reset point, and only there: ask whether a replay was ordered, and what this turn's statement came to.

        The time between is not the job's: nobody worked for it, and a deadline after the start goes on from where it stood.
        """
        if not self._was_reset:
            return
        self._was_reset = False
        flow, job = self._flow, self._flow.job
        # Where this task looked at the time before the gate, it is in that gap.
        since = workflow.time() - flow.now
        job.ledger.started += since if since > 0 else flow.idle
        flow.now = workflow.time()
        claim: Claim = await workflow.execute_local_activity(
            "claim_replay",
            ClaimQuestion(batch=flow.order.key.batch, job=flow.order.key.job, turn=job.turn, parent=flow.parent),
            result_type=Claim,
            start_to_close_timeout=READ_LIMIT,
            local_retry_threshold=LOCAL_LIMIT,
            retry_policy=PATIENT,
        )
        if claim.execution is not None:
            self._redone = (job.turn, claim.execution)
        if claim.replay is not None:
            self.divergences, self.nodes, self.events, self.record = (), None, None, None
            self._told = False
            self._take(claim.replay)

    async def begin_turn(self) -> Stop | None:
        """Look up the next turn in the record that is followed. A stop, if the record has ended and the replay with it."""
        self._follow(None)
        turn = self._flow.job.turn + 1
        if self.order is not None and self.order.mode is ReplayMode.RESTORE and not self._follows(turn):
            self._take(self._next)
        if not self._follows(turn):
            return None
        self._follow(await self._recorded(turn))
        return None if self.record is not None else self._ended()

    async def begin_call(self) -> bool:
        """Before each prompt of a turn: the gate; at turn N of a replay its message, and after a reset the record of that turn.

        Whether the run was reset to here: time has passed since the turn began, and its budget may be another.
        """
        job, was_reset = self._flow.job, self._was_reset
        await self.gate()
        while self.record is None and self._starts_at(job.turn) and self._follows(job.turn):
            self._follow(await self._recorded(job.turn))
            if self.record is None:
                break
            # The turn began before the reset: of the record's messages those come now that it did not begin with.
            for text in _without(self.record.messages, self._heard):
                self._hear(text)
            await self.gate()
        order = self.order
        if order is not None and order.message is not None and self._starts_at(job.turn) and not self._told:
            self._told = True
            self._hear(order.message)
        return was_reset

    def messages(self, arrived: list[str]) -> tuple[list[str], list[str]]:
        """What the turn begins with, and what waits.

        A record brings the messages of its turns itself. Those that the reset delivers again are the same ones, and are taken
        out; others wait until the record ends.
        """
        self._heard = arrived if self.record is None else list(self.record.messages)
        return self._heard, [] if self.record is None else _without(arrived, self._heard)

    def wish(self, asked: bool) -> tuple[bool, bool]:
        """Whether the turn begins with a user's wish to condense, and whether one waits: as for messages."""
        if self.record is None:
            return asked, False
        return self.record.interim.condense, asked and not self.record.interim.condense

    def _hear(self, text: str) -> None:
        self._flow.job.hear(text)
        self._heard = [*self._heard, text]

    def _starts_at(self, turn: int) -> bool:
        return self.order is not None and self.order.start == turn

    @property
    def model(self) -> dict[str, Any] | None:
        """What litellm is called with in place of the job's own model."""
        return self.order.model if self.order is not None and self._flow.job.turn >= self.order.start else None

    @property
    def given(self) -> Given | None:
        """The reply of this turn, if no model is called for it."""
        order, turn = self.order, self._flow.job.turn
        if order is None:
            return None
        if order.statement is not None and self._starts_at(turn):
            return Given(statement=order.statement)
        return Given(source=order.source) if self.record is not None else None

    @property
    def limit(self) -> int | None:
        """To how many tokens the provider that refused the record's prompt limited the next; None if it did not, or not again."""
        limits, known = self.record.interim.limits if self.record is not None else (), len(self._flow.job.limits)
        return limits[known] if known < len(limits) else None

    @property
    def restored(self) -> TurnReply | None:
        """The recorded reply, if the turn is only restored: it has its step already, and gets no other."""
        record, order = self.record, self.order
        if record is None or order is None or order.mode is not ReplayMode.RESTORE:
            return None
        return TurnReply(**dict(record.reply), step=record.step, at=record.at)

    @property
    def shown(self) -> tuple[str, ...] | None:
        """The digests of the prompt that the record's step was sent, where this turn's step is that."""
        return self.record.layout if self.record is not None and self.record.layout else None

    def clock(self, reply: TurnReply) -> float:
        """The time at which the clock of the turn's statement stands."""
        if self.record is not None and self.order is not None and self.order.answers:
            return self.record.at
        return reply.at or self._flow.now

    def tick_at(self, now: float) -> float:
        """The time at which the turn's tick stands."""
        record = self.record
        answered = record is not None and self.order is not None and self.order.answers
        return record.interim.at if answered and record is not None and record.interim.at is not None else now

    @property
    def effect(self) -> EffectName | None:
        """Where effects are answered from; None for the world."""
        order = self.order
        if self.record is None or order is None or order.source is None or not order.answers:
            return None
        return EffectName(source=order.source, kept=order.mode is not ReplayMode.RESTORE)

    def foreseen(self, statement: JobStatement) -> Verdict | None:
        """The verdict of a stretch that is known to have been run before: its time is not measured again."""
        expected = self._expected()
        if expected is None:
            return None
        last = len(statement.effects) == len(expected.get("effects", ()))
        if last and expected.get("status") == "timeout":
            return Verdict(status=VerdictStatus.TIMEOUT)
        kind = (expected.get("exception") or {}).get("type")
        if kind is None:
            return Verdict(checked=Checked.PASSED)
        # Other exceptions may be the interpreter's: then the checker is asked again, and need not answer.
        return Verdict(checked=Checked.REFUSED if kind in REFUSALS else Checked.UNKNOWN)

    async def summary(self, name: str) -> TurnReply | str | None:
        """The recorded summary, or why there is none; None if a model is to write it."""
        record, order = self.record, self.order
        if record is None or order is None:
            return None
        if order.source is None:
            return None
        question = RecordedQuestion(source=order.source, turn=self._flow.job.turn, summary=name)
        found = await self._question(question, f"recorded-{name}")
        if found is not None:
            return TurnReply(**dict(found.reply), step=found.step, at=found.at)
        return "the record has no such summary" if order.answers else None

    def compare(self) -> None:
        """Compare the statement with its record.

        Raises:
            JobFailed: if a turn that is to be restored came to something else.
        """
        record, order, job = self.record, self.order, self._flow.job
        self._redone = None
        edited = order is not None and order.statement is not None and self._starts_at(job.turn)
        if record is None or order is None or edited or (record.execution is None and record.nodes is None):
            return
        now = job.execution.archived() if job.execution is not None else None
        self._found(compare_executions(job.turn, record.execution, now))
        self.nodes, self.nodes_at_end, self.events = record.nodes, record.ended, record.events

    def compare_context(self, changed: tuple[dict[str, Any], ...], turn: int, *, at_end: bool = False) -> None:
        """Compare what the statement of ``turn`` made of the nodes, and the tick after it, which there is not ``at_end``; then how.

        Where only one of both timelines ends after the turn, it is not known what the other's nodes were there.
        """
        expected, self.nodes = self.nodes, None
        events, self.events = self.events, None
        job = self._flow.job
        if expected is not None and self.nodes_at_end is at_end:
            found = compare_nodes(turn, expected, changed)
            self._found(found)
            if events is not None:
                known = {divergence.subject for divergence in found} | summed_up(expected, changed)
                self._found(compare_events(turn, events, job.happenings.records, known))
        job.add_deltas(tuple(Delta("replay", "replay", "replay", found.line()) for found in self.divergences))

    def with_divergences(self, execution: dict[str, Any] | None) -> dict[str, Any] | None:
        """The record of the last statement's execution, with its divergences."""
        if not self.divergences:
            return execution
        return {**(execution or {}), "divergences": [found.model_dump(mode="json") for found in self.divergences]}

    def called(self) -> None:
        """The divergences so far are archived."""
        self.divergences = ()

    def _take(self, order: ReplayOrder | None) -> None:
        self.order = order
        ledger = self._flow.job.ledger
        ledger.repeats = order is not None and order.follows and order.answers
        if order is not None and order.budget is not None:
            ledger.budget = order.budget

    def _follow(self, record: RecordedTurn | None) -> None:
        self.record = record
        self._flow.job.ledger.repeats = record is not None and self.order is not None and self.order.answers

    def _follows(self, turn: int) -> bool:
        order = self.order
        return (
            order is not None and order.follows and turn >= order.start and (order.until is None or turn <= order.until)
        )

    def _expected(self) -> dict[str, Any] | None:
        if self._redone is not None and self._redone[0] == self._flow.job.turn:
            return self._redone[1]
        if self.record is not None and self.order is not None and self.order.answers:
            return self.record.execution
        return None

    def _found(self, divergences: tuple[Divergence, ...]) -> None:
        if divergences and self.order is not None and self.order.mode is ReplayMode.RESTORE:
            raise JobFailed(f"the record cannot be restored: {divergences[0].line()}")
        self.divergences += divergences

    def _ended(self) -> Stop | None:
        """The record has no more turns."""
        order, turn = self.order, self._flow.job.turn
        if order is not None and order.mode is ReplayMode.REEXECUTE and order.then is AfterRecord.CONTINUE:
            self.order = order.model_copy(update={"mode": ReplayMode.RERUN})
            return None
        return Stop(JobStatus.CANCELLED, f"the record ends after turn {turn}")

    async def _recorded(self, turn: int) -> RecordedTurn | None:
        order = self.order
        if order is None or order.source is None:
            return None
        last = order.mode is ReplayMode.RESTORE and turn == order.until
        question = RecordedQuestion(source=order.source, turn=turn, layout=last)
        return await self._question(question, f"recorded-{turn}")

    async def _question(self, question: RecordedQuestion, name: str) -> RecordedTurn | None:
        found: RecordedTurn | None = await workflow.execute_activity(
            "recorded_turn",
            question,
            result_type=RecordedTurn,
            activity_id=name,
            start_to_close_timeout=READ_LIMIT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RECORD_TRIES,
            summary=f"the record of turn {question.turn}",
        )
        return found


def _without(texts: Iterable[str], taken: Iterable[str]) -> list[str]:
    """``texts`` without those of ``taken``, each as often as it stands there."""
    left = list(texts)
    for text in taken:
        if text in left:
            left.remove(text)
    return left
