"""Replays within a run: what a reset run is to do, and which record it follows turn by turn
(docs/design.md section 9).

A reset makes the server give the run another random seed. That callback is the only thing in a
workflow that fires at a reset point and nowhere else, also when the run is replayed later; so it
opens the gate at which the run asks for its orders.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.record import (
        AfterRecord,
        Claim,
        ClaimQuestion,
        EffectName,
        RecordedQuestion,
        RecordedTurn,
        ReplayMode,
        ReplayOrder,
        ReplySource,
    )
    from runtime.base.values import JobKey
    from runtime.context.interim import Interim
    from runtime.job.divergence import compare_executions
    from runtime.job.statement import JobStatement
    from runtime.job.stops import JobStatus, Stop
    from workflows.answers import Live, Recorded, ask, without
    from workflows.calling import call_within
    from workflows.comparing import Comparison
    from workflows.messages import Origin
    from workflows.moment import Moment
    from workflows.patches import GATED, OUTLASTS, SLEPT, SLEPT_OUT, patched


class Replaying:
    """The replay that a run is part of, if it is one: ``order`` says how.

    It decides from where ``Moment.answers`` come.
    """

    def __init__(self, key: JobKey, moment: Moment) -> None:
        self._key = key
        self._moment = moment
        self._comparison = Comparison()
        self.order: ReplayOrder | None = None
        self._next: ReplayOrder | None = None
        self._redone: tuple[int, dict[str, Any]] | None = None
        self._told = False
        self._was_reset = False
        self.taken_back = False
        """Whether the job was ever reset."""
        workflow.register_random_seed_callback(self._reset)

    def _reset(self, seed: int) -> None:
        self._was_reset = self.taken_back = True

    def begin(self, origin: Origin | None) -> None:
        """Go on with what the run before was in, or begin as the fork's order says."""
        if origin is not None:
            self._comparison.begin(origin)
            # A reset to the first call of a run that goes on is heard of before this.
            self.taken_back = self.taken_back or origin.taken_back
            self._next = origin.replay
            self._take(origin.restore or origin.replay)

    @property
    def begins_from(self) -> EffectName | None:
        """The record that has what the job's servers offered, where statements come from one."""
        order = self.order
        if order is None or order.source is None or not order.follows:
            return None
        return EffectName(source=order.source, kept=order.begins)

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run must know, as fields of its ``Origin``."""
        return {
            "restore": self.order if self._restoring else None,
            "replay": self._next if self._restoring else self.order,
            "taken_back": self.taken_back,
            **self._comparison.carried,
        }

    async def gate(self) -> bool:
        """At a reset point, and only there: ask whether a replay was ordered, and what this turn's
        statement came to. Whether this is one.
        """
        if not self._was_reset:
            return False
        self._was_reset = False
        moment, turn = self._moment, self._moment.job.turn
        moment.reset()
        claim: Claim = await call_within(
            "claim_replay",
            ClaimQuestion(
                batch=self._key.batch, job=self._key.job, turn=turn, parent=moment.parent
            ),
            Claim,
        )
        moment.came_from(claim.bases)
        if claim.execution is not None:
            self._redone = (turn, claim.execution)
        if claim.replay is not None:
            # What an earlier replay had found is of another record.
            self._comparison.forget()
            moment.answers = Live()
            self._told = False
            self._take(claim.replay)
        self._answer_again()
        return True

    async def begin_turn(self) -> Stop | None:
        """Look up the next turn in the record that is followed.

        A stop, if the record has ended and the replay with it.
        """
        # What was known of a statement was of the turn before.
        self._redone = None
        self._follow(None)
        turn = self._moment.job.turn + 1
        if self._restoring and not self._follows(turn):
            self._take(self._next)
        if not self._follows(turn):
            return None
        record = await self._recorded(turn)
        self._follow(record, goes_on=self._goes_on_with(turn))
        return None if record is not None else self._ended()

    async def begin_turn_anew(self) -> Stop | None:
        """Behind a wait before a turn: after a reset to there the turn begins anew, with the order
        of the replay and the record that it follows. A stop, if no turn follows.
        """
        if not patched(GATED) or not await self.gate():
            return None
        return await self.begin_turn() or self._moment.job.stop(self._moment.now)

    async def stop_behind_a_wait(self) -> Stop | None:
        """A stop, if the job outlived its budget in a wait before a turn."""
        return await self.begin_turn_anew() or self._moment.job.stop(self._moment.now)

    async def begin_call(self) -> bool:
        """Before each prompt of a turn: the gate; at turn N of a replay its message, and after a
        reset the record of that turn.

        Whether the run was reset to here: time has passed since the turn began, and its budget may
        be another.
        """
        job, was_reset = self._moment.job, self._was_reset
        await self.gate()
        while (
            self._moment.answers.record is None
            and self._starts_at(job.turn)
            and self._follows(job.turn)
        ):
            record = await self._recorded(job.turn)
            self._follow(record)
            if record is None:
                break
            # The turn began before the reset: of the record's messages those come now that it did
            # not begin with.
            for text in without(record.messages, self._moment.heard):
                self._hear(text)
            # Asking was an activity, so the run may have been reset to after it: then there are
            # other orders.
            await self.gate()
        order = self.order
        if (
            order is not None
            and order.message is not None
            and self._starts_at(job.turn)
            and not self._told
        ):
            # Once: a prompt is made again after a refusal, and then the message stands in the log
            # already.
            self._told = True
            self._hear(order.message)
        self._order_of_the_call()
        return was_reset

    def begin_statement(self) -> None:
        """One that goes on takes its effects from the world: what the record has of them stands in
        the run's own archive.
        """
        if self._goes_on_with(self._moment.job.turn):
            self._moment.answers.effect = None
            self._moment.job.ledger.repeats = False

    def fell_asleep(self, clock: float, *, effects: int) -> float | None:
        """When the job fell asleep behind a statement that goes on, and whose clock stood so: at
        once, if it had no ``effects``. None if that is not known, or is now.
        """
        if effects or not self._goes_on_with(self._moment.job.turn) or not patched(SLEPT):
            return None
        return min(clock, self._moment.now)

    def wake(self) -> None:
        """End the sleep behind the last turn that is restored, if the turn after it had begun its
        call: it was over.
        """
        record, order, turn = self._moment.answers.record, self.order, self._moment.job.turn
        last = self._restoring and order is not None and order.until == turn
        following = self._next is not None and self._next.follows
        if last and not following and record is not None and record.woken and patched(SLEPT_OUT):
            self._moment.job.sleeping.repeat(Interim(woken=record.woken))

    @property
    def restores(self) -> bool:
        """Whether the statement under way is of a record that is restored, be it to go on in its
        midst.
        """
        return self._restoring and self._moment.answers.record is not None

    def is_as_recorded(self, statement: JobStatement) -> bool:
        """Whether a statement that has ended is not restored, or came to what it is to."""
        moment, record = self._moment, self._moment.answers.record
        turn = moment.job.turn
        if record is None or not self._restoring or self._goes_on_with(turn):
            return True
        if record.execution is None:
            return True
        execution, _ = statement.close(moment.now)
        return not compare_executions(turn, record.execution, execution.archived())

    def compare(self) -> None:
        """Compare the statement with its record, unless it is an edited one.

        Raises:
            JobFailed: if a turn that is to be restored came to something else.
        """
        record, order, job = self._moment.answers.record, self.order, self._moment.job
        self._redone = None
        edited = order is not None and order.statement is not None and self._starts_at(job.turn)
        if record is not None and not edited and not self._goes_on_with(job.turn):
            now = None if job.execution is None else job.execution.archived()
            self._comparison.statement(job.turn, now, record, restoring=self._restoring)

    def compare_context(
        self, changed: tuple[dict[str, Any], ...], turn: int, *, at_end: bool = False
    ) -> None:
        """Compare the nodes after the statement of ``turn``, and tell the model what differs; see
        ``Comparison.context``.
        """
        job = self._moment.job
        job.add_deltas(
            self._comparison.context(
                turn, changed, job.happenings.events, restoring=self._restoring, at_end=at_end
            )
        )

    def ticked(self, turn: int) -> tuple[str, ...]:
        """The nodes that the tick of ``turn`` reached in the record."""
        return self._comparison.ticked(turn)

    def told_in(self, execution: dict[str, Any] | None) -> dict[str, Any] | None:
        """The record of the last statement's execution, with its divergences."""
        return self._comparison.told_in(execution)

    def archived(self) -> None:
        """A step holds the divergences so far."""
        self._comparison.archived()

    @property
    def _restoring(self) -> bool:
        return self.order is not None and self.order.mode is ReplayMode.RESTORE

    def _hear(self, text: str) -> None:
        self._moment.job.hear(text)
        self._moment.heard = [*self._moment.heard, text]

    def _goes_on_with(self, turn: int) -> bool:
        return self.order is not None and self.order.goes_on_with(turn)

    def _starts_at(self, turn: int) -> bool:
        return self.order is not None and self.order.start == turn

    def _take(self, order: ReplayOrder | None) -> None:
        self.order = order
        ledger = self._moment.job.ledger
        ledger.repeats = order is not None and order.follows and order.answers
        if order is not None and order.budget is not None:
            other = order.budget.deadline not in {None, ledger.budget.deadline}
            if ledger.until and other and patched(OUTLASTS):
                ledger.until = ""
            ledger.budget = order.budget

    def _follow(self, record: RecordedTurn | None, *, goes_on: bool = False) -> None:
        order, ledger = self.order, self._moment.job.ledger
        if record is not None and order is not None:
            self._moment.answers = Recorded(record, order, goes_on=goes_on)
            ledger.repeats = order.answers
        else:
            self._moment.answers, ledger.repeats = Live(), False
        self._answer_again()

    def _answer_again(self) -> None:
        """A statement that a reset interrupted comes to what it came to before the reset."""
        if self._redone is not None and self._redone[0] == self._moment.job.turn:
            self._moment.answers.execution = self._redone[1]

    def _order_of_the_call(self) -> None:
        """An edited statement takes the place of the model's reply at the turn that the order
        begins with; another model is for that turn and all that follow.
        """
        order, answers, turn = self.order, self._moment.answers, self._moment.job.turn
        if order is None or turn < order.start:
            return
        answers.model = order.model
        if order.statement is not None and turn == order.start:
            recorded = answers.reply_from
            answers.reply_from = ReplySource(
                statement=order.statement, clock=recorded.clock if recorded is not None else 0.0
            )

    def _follows(self, turn: int) -> bool:
        order = self.order
        return (
            order is not None
            and order.follows
            and turn >= order.start
            and (order.until is None or turn <= order.until)
        )

    def _ended(self) -> Stop | None:
        """The record has no more turns."""
        order, turn = self.order, self._moment.job.turn
        if (
            order is not None
            and order.mode is ReplayMode.REEXECUTE
            and order.then is AfterRecord.CONTINUE
        ):
            self.order = order.model_copy(update={"mode": ReplayMode.RERUN})
            return None
        return Stop(JobStatus.CANCELLED, f"the record ends after turn {turn}")

    async def _recorded(self, turn: int) -> RecordedTurn | None:
        order = self.order
        if order is None or order.source is None:
            return None
        goes_on = order.goes_on_with(turn)
        last = order.mode is ReplayMode.RESTORE and turn == order.until and not goes_on
        question = RecordedQuestion(
            source=order.source, turn=turn, layout=last, going_on=self._key if goes_on else None
        )
        with self._moment.ends_by_a_cancel():
            return await ask(question, f"recorded-{turn}")
