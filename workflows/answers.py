"""Where a turn's answers come from: the world (``Live``), or the record of a turn that is followed
(``Recorded``).

The loop asks both in the same words; a record answers what it holds, and says where the effects of
its turn are archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts import TurnReply
    from activities.record import (
        EffectName,
        RecordedQuestion,
        RecordedTurn,
        ReplayMode,
        ReplayOrder,
        ReplySource,
    )
    from runtime.context.interim import Interim
    from runtime.context.sub_job_end import SubJobEnd
    from runtime.interpreter.executions import ExceptionInfo
    from runtime.interpreter.host import Effect
    from runtime.interpreter.objections import is_refusal
    from runtime.interpreter.run import Verdict, VerdictStatus
    from runtime.interpreter.verdicts import Checked, ended_by
    from workflows.calling import result_of
    from workflows.limits import RECORD_TRIES

REFUSALS = frozenset({"TypeCheckError", "SyntaxError"})
"""Exceptions of statements that the type checker refused."""


class Live:
    """A turn that takes its answers from the world: nothing of it is known before."""

    record: RecordedTurn | None = None
    """The turn that is followed."""
    interim: Interim | None = None
    """What the record has of the time between two turns."""
    read_of: Mapping[tuple[int, int], str] = MappingProxyType({})
    """Which versions of the job's own workspace the payloads of that time had been read of, by the
    turns and numbers of the readings.
    """
    effect: EffectName | None = None
    """Where effects are answered from; None for the world."""
    execution: dict[str, Any] | None = None
    """What the turn's statement is known to come to."""
    reply_from: ReplySource | None = None
    """Where the reply is taken from, if no model is called for it."""
    model: dict[str, Any] | None = None
    """What litellm is called with in place of the job's own model."""
    restored: TurnReply | None = None
    """The reply of a turn that has its step already, and gets no other."""
    shown: tuple[str, ...] | None = None
    """The digests of the prompt that was sent, where the turn's step is that of the record."""

    def messages(self, arrived: list[str], room: int) -> tuple[list[str], list[str]]:
        """What the turn begins with of what has arrived, for whose first ``room`` there is room,
        and what waits.
        """
        return arrived[:room], arrived[room:]

    def wish(self, asked: bool) -> tuple[bool, bool]:
        """Whether the turn begins with a user's wish to condense, and whether one waits: as for
        messages.
        """
        return asked, False

    def ended(self, arrived: list[SubJobEnd]) -> tuple[tuple[SubJobEnd, ...], list[SubJobEnd]]:
        """The ends of sub-jobs that the turn begins with of what has arrived, and those that
        wait.
        """
        return tuple(arrived), []

    def clock(self, reply: TurnReply, now: float) -> float:
        """The time at which the clock of the turn's statement stands."""
        # Histories of before have no time in their replies.
        return reply.at or now

    def foreseen(self, effects: int) -> Verdict | None:
        """The verdict of the stretch after so many effects, if it is known to have been run before:
        its time is not measured again.
        """
        if self.execution is None:
            return None
        last = effects == len(self.execution.get("effects", ()))
        if last and self.execution.get("status") == "timeout":
            return Verdict(status=VerdictStatus.TIMEOUT)
        told = self.execution.get("exception")
        if told is None:
            return Verdict(checked=Checked.PASSED)
        exception = ExceptionInfo.model_validate(told)
        if last and (ended := ended_by(exception)) is not None:
            return ended
        # Other exceptions may be the interpreter's: then the checker is asked again, and need not
        # answer.
        if told["type"] not in REFUSALS:
            return Verdict(checked=Checked.UNKNOWN)
        ran = bool(self.execution.get("effects")) or not is_refusal(exception)
        return Verdict(checked=Checked.REFUSED, refusal=None if ran else exception)

    def effect_for(self, effect: Effect, number: int) -> EffectName | None:
        """Where effect ``number`` of the turn's statement is answered from; None for the world."""
        return self.effect

    def tick_at(self, now: float) -> float:
        """The time at which the turn's tick stands."""
        return now

    def limit(self, known: int) -> int | None:
        """To how many tokens the prompt is limited after ``known`` limits, since a provider refused
        it; None if it is not.
        """
        return None

    async def summary(self, name: str, turn: int) -> TurnReply | str | None:
        """A summary, or why there is none; None if a model is to write it."""
        return None


class Recorded(Live):
    """A turn that is followed in a record, as ``order`` says."""

    def __init__(self, record: RecordedTurn, order: ReplayOrder, *, goes_on: bool = False) -> None:
        """``goes_on``: the turn is the run's own, for its statement was in its midst."""
        self.record: RecordedTurn = record
        self.interim: Interim = record.interim
        self.read_of = {(turn, effect): version for turn, effect, version in record.read_of}
        self._source = order.source
        self._answers = order.answers
        self.reply_from = ReplySource(
            source=order.source, goes_on=goes_on, clock=record.at if order.answers else 0.0
        )
        # Known before it runs only where the world's answers are the record's too: else it may
        # differ.
        if order.answers:
            self.execution = None if goes_on else record.execution
            if order.source is not None:
                self.effect = EffectName(
                    source=order.source, kept=goes_on or order.mode is not ReplayMode.RESTORE
                )
        if order.mode is ReplayMode.RESTORE and not goes_on:
            self.restored = TurnReply(**dict(record.reply), step=record.step, at=record.at)
        self.shown = record.layout or None

    def messages(self, arrived: list[str], room: int) -> tuple[list[str], list[str]]:
        """As the record has them, which brings the messages of its turns itself.

        Those that the reset delivers again are the same ones, and are taken out; others wait until
        the record ends.
        """
        # A list, not a set: a user may have sent one text twice, and both count.
        told = list(self.record.messages)
        return told, without(arrived, told)

    def wish(self, asked: bool) -> tuple[bool, bool]:
        """As for messages."""
        return self.interim.condense, asked and not self.interim.condense

    def ended(self, arrived: list[SubJobEnd]) -> tuple[tuple[SubJobEnd, ...], list[SubJobEnd]]:
        """As the record has them."""
        told = self.interim.ended
        names = {end.job for end in told}
        return told, [end for end in arrived if end.job not in names]

    def clock(self, reply: TurnReply, now: float) -> float:
        """The record's, if it answers for the world."""
        return self.record.at if self._answers else super().clock(reply, now)

    def effect_for(self, effect: Effect, number: int) -> EffectName | None:
        """By its number, where the record has the same call there."""
        if self.effect is None or self.record.execution is None:
            return self.effect
        effects = self.record.execution.get("effects", ())
        told = effects[number] if number < len(effects) else {}
        if (told.get("name"), told.get("request_digest")) == (effect.name, effect.digest):
            return self.effect
        return self.effect.model_copy(update={"missing": True})

    def tick_at(self, now: float) -> float:
        """The record's, if it answers for the world and its tick looked at the time."""
        return self.interim.at if self._answers and self.interim.at is not None else now

    def limit(self, known: int) -> int | None:
        """As the provider that refused the record's prompt limited the next."""
        limits = self.interim.limits
        return limits[known] if known < len(limits) else None

    async def summary(self, name: str, turn: int) -> TurnReply | str | None:
        """The recorded summary; where there is none, none is written if the record answers for the
        world.
        """
        if self._source is None:
            return None
        written = await ask(
            RecordedQuestion(source=self._source, turn=turn, summary=name), f"recorded-{name}"
        )
        if written is not None:
            return TurnReply(**dict(written.reply), step=written.step, at=written.at)
        return "the record has no such summary" if self._answers else None


async def ask(question: RecordedQuestion, name: str) -> RecordedTurn | None:
    """What the archive has of a recorded turn.

    No time of the job's passes, so nothing is looked at after it.
    """
    turn: RecordedTurn | None = await result_of(
        "recorded_turn",
        question,
        RecordedTurn,
        id=name,
        tries=RECORD_TRIES,
        summary=f"the record of turn {question.turn}",
    )
    return turn


def without(texts: Iterable[str], taken: Iterable[str]) -> list[str]:
    """``texts`` without those of ``taken``, each as often as it stands there."""
    left = list(texts)
    for text in taken:
        if text in left:
            left.remove(text)
    return left
