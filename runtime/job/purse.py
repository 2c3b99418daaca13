"""A batch's budget, granted to its jobs in slices: no call waits for a counter, and what all jobs
may spend at once is never more than the budget.

A job is granted a slice as it begins, spends from it, and asks for another when it comes to its
end. What it was granted is set aside until it ends; then what it did not spend is there for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from runtime.base.dollars import dollars
from runtime.base.spec.models import Amount
from runtime.base.values import Compact, Value

PARTS = 4
"""A slice is so small a part of what a job's even share at full concurrency would be."""

KINDS = ("turns", "tokens", "usd")

NOTHING = Amount(turns=0, tokens=0, usd=0.0)


def plus(one: Amount, other: Amount) -> Amount:
    """Both together; what is unbounded in ``one`` is."""
    return _each(lambda a, b: a + b, one, other)


def larger(one: Amount, other: Amount) -> Amount:
    """Of each kind the larger; what is unbounded in ``one`` is."""
    return _each(max, one, other)


def minus(one: Amount, other: Amount) -> Amount:
    """What is left of ``one``, nothing at least; what is unbounded in it is."""
    return _each(lambda a, b: max(a - b, 0), one, other)


def within(one: Amount, other: Amount) -> Amount:
    """``one`` in the kinds that are bounded in ``other``; the rest is unbounded."""
    return Amount(**{kind: getattr(one, kind) for kind in _bounded(other)})


def covers(one: Amount, other: Amount) -> bool:
    """Whether ``one`` is as much as ``other``, in each kind."""
    return all(
        mine is None or (theirs or 0) <= mine
        for mine, theirs in ((getattr(one, kind), getattr(other, kind)) for kind in KINDS)
    )


def is_spent(left: Amount) -> bool:
    """Whether nothing is left of one kind, so that no call can be made."""
    return any((value := getattr(left, kind)) is not None and value <= 0 for kind in KINDS)


def in_words(amount: Amount) -> str:
    """What is bounded of it, in words: ``20 turns, 500,000 tokens, $1``."""
    return ", ".join(
        dollars(value) if kind == "usd" else f"{value:,} {kind}"
        for kind in KINDS
        if (value := getattr(amount, kind)) is not None
    )


class Ask(Compact):
    """A job's wish for ``wanted`` more than it was granted; ``waits``: it does nothing until it is
    answered.

    ``run`` of the job has ``heard`` so many answers by then. The answer names the ``id``, which is
    another for each wish, and the same where it is uttered again. Releases before do not say so.
    """

    job: str
    wanted: Amount
    waits: bool
    run: str = ""
    heard: int = 0
    id: str = ""


class Granted(Value):
    """The answer to the wish ``ask``: another ``slice``; None, with the reason, if there is none
    for it.
    """

    slice: Amount | None = None
    reason: str = ""
    ask: str = Field(default="", exclude_if=lambda ask: not ask)


class SavedPurse(Compact):
    """A purse for the batch's next run."""

    budget: Amount
    places: int
    spent: Amount = NOTHING
    held: dict[str, Amount] = {}
    asks: tuple[Ask, ...] = ()
    told: dict[str, tuple[str, int]] = {}
    answered: dict[str, str] = {}


@dataclass
class Purse:
    """What a batch has to grant: its ``budget``, for ``places`` jobs at a time.

    ``spent`` is what jobs spent that have ended, ``held`` what each open one was granted in all,
    ``told`` the run of each that asked last, and how many answers it was given, ``answered`` the id
    of its wish that was answered last.
    """

    budget: Amount
    places: int
    spent: Amount = NOTHING
    held: dict[str, Amount] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    told: dict[str, tuple[str, int]] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)

    def saved(self) -> SavedPurse:
        """For the batch's next run."""
        return SavedPurse(
            budget=self.budget,
            places=self.places,
            spent=self.spent,
            held=dict(self.held),
            asks=tuple(self.asks.values()),
            told=dict(self.told),
            answered=dict(self.answered),
        )

    @classmethod
    def restored(cls, saved: SavedPurse) -> Purse:
        """As it was saved."""
        asks = {ask.job: ask for ask in saved.asks}
        held, told, answered = dict(saved.held), dict(saved.told), dict(saved.answered)
        return cls(saved.budget, saved.places, saved.spent, held, asks, told, answered)

    @property
    def free(self) -> Amount:
        """What is neither spent nor granted."""
        left = minus(self.budget, self.spent)
        for held in self.held.values():
            left = minus(left, held)
        return left

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to grant."""
        return is_spent(self.free)

    def first(self, job: str, most: Amount) -> Amount | None:
        """The first slice of a job that may spend ``most`` itself; None if there is none now."""
        free = self.free
        if is_spent(free):
            return None
        slice = _least(free, _least(self._portion, most))
        self.held[job] = slice
        return slice

    def ask(self, ask: Ask) -> None:
        """Take note of what a job wants; ``settle`` answers."""
        # Only of open jobs: what is granted is added to what they hold. A run that goes on utters
        # the wish of the run before again, whose answer is on its way.
        if ask.job not in self.held or (ask.id and ask.id == self.answered.get(ask.job)):
            return
        run, told = self.told.get(ask.job, ("", 0))
        # An answer is on its way: who hears it asks again, if that is not enough.
        if ask.run != run or ask.heard >= told:
            self.asks[ask.job] = ask

    def ended(self, job: str, spent: Amount | None) -> None:
        """A job has ended, and spent so much; None: nobody knows, so all that it was granted."""
        held = self.held.pop(job, None)
        self.asks.pop(job, None)
        self.told.pop(job, None)
        self.answered.pop(job, None)
        if held is not None:
            # Counted against the batch where nobody knows: a budget errs on the side of less.
            self.spent = plus(self.spent, held if spent is None else spent)

    def settle(self) -> dict[str, Granted]:
        """The answers that can be given now, by job.

        Who wants more than there is waits for others to end. Where all that are open wait, nobody
        will: then the last who asked is refused, ends, and leaves what it has to the others.
        """
        answers: dict[str, Granted] = {}
        for job, ask in list(self.asks.items()):
            if (slice := self._more(ask.wanted)) is not None:
                self.held[job] = plus(self.held[job], slice)
                answers[job] = Granted(slice=slice, ask=ask.id)
                self._answered(job)
        if self.asks and all(job in self.asks and self.asks[job].waits for job in self.held):
            # One alone: what it leaves may be enough for all the others.
            job = next(reversed(self.asks))
            answers[job] = Granted(reason=self.reason(), ask=self.asks[job].id)
            self._answered(job)
        return answers

    def reason(self) -> str:
        """Why a job ends for whom nothing is left, in one sentence."""
        return f"what is left of the batch's budget ({in_words(self.budget)}) holds no other call"

    @property
    def _portion(self) -> Amount:
        parts = self.places * PARTS
        # One at least: a large number of places must not round a slice down to nothing.
        return Amount(
            turns=None if self.budget.turns is None else max(self.budget.turns // parts, 1),
            tokens=None if self.budget.tokens is None else max(self.budget.tokens // parts, 1),
            usd=None if self.budget.usd is None else round(self.budget.usd / parts, 9),
        )

    def _answered(self, job: str) -> None:
        ask = self.asks.pop(job)
        run, told = self.told.get(job, ("", 0))
        self.answered[job] = ask.id
        if ask.run:
            # A run that was reset has heard what the history that it kept holds.
            self.told[job] = (ask.run, (told if ask.run == run else ask.heard) + 1)

    def _more(self, wanted: Amount) -> Amount | None:
        free = self.free
        # All or nothing: with a part of it the job could make no call, and would keep it from
        # others.
        if is_spent(free) or not covers(free, wanted):
            return None
        return _least(free, larger(self._portion, wanted))


def _each(function: Callable[[float, float], float], one: Amount, other: Amount) -> Amount:
    """``function`` of each kind that is bounded in ``one`` (of the other, unbounded is nothing)."""
    made: dict[str, Any] = {}
    for kind in KINDS:
        mine, theirs = getattr(one, kind), getattr(other, kind)
        if mine is not None:
            value = function(mine, theirs or 0)
            made[kind] = round(value, 9) if kind == "usd" else int(value)
    return Amount(**made)


def _least(one: Amount, other: Amount) -> Amount:
    """The less of both in each kind that is bounded in ``one``."""
    return _each(min, one, Amount(**{**one.model_dump(), **_bounded(other)}))


def _bounded(amount: Amount) -> dict[str, Any]:
    return {kind: value for kind in KINDS if (value := getattr(amount, kind)) is not None}
