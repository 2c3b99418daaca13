"""The sub-jobs of a job, and what of its budget they have: it is lent when they begin, and what
they did not spend comes back when they end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from runtime.base.digests import digest_of
from runtime.base.plurals import counted
from runtime.base.spec.models import Amount, Budget, Spawn
from runtime.base.values import Value
from runtime.context.outcomes import Refused
from runtime.context.sub_job_end import SubJobEnd
from runtime.interpreter.spawning import SpawnRequest, Wish
from runtime.job.purse import NOTHING, plus

KEPT = 10
"""One part in so many of a budget cannot be lent: with it the job sums up what its sub-jobs did."""


KEPT_TURNS = 2
"""Turns that cannot be lent in any case: one to wait, one to finish."""


class SubJob(Value):
    """A sub-job: its name (``BATCH/JOB``), the job that started it, what it was asked, and lent.

    ``end`` is None while it is open.
    """

    job: str
    parent: str
    call: str
    lent: Amount
    end: SubJobEnd | None = None

    @property
    def taken(self) -> Amount:
        """What it has of its job's budget: what it was lent, in the end what it spent."""
        # Where nobody knows, it may have spent all: a budget errs on the side of less.
        if self.end is None or self.end.lost:
            return self.lent
        tokens, usd = max(self.end.tokens, 0), max(self.end.usd, 0.0)
        return Amount(turns=self.end.turns, tokens=tokens, usd=round(usd, 9))


@dataclass
class SubJobs:
    """The sub-jobs of a job, in the order in which it started them."""

    known: dict[str, SubJob] = field(default_factory=dict)

    MADE_ANEW: ClassVar[frozenset[str]] = frozenset()

    @property
    def taken(self) -> Amount:
        """What all of them have of the job's budget."""
        return reduce(plus, (one.taken for one in self.known.values()), NOTHING)

    def spent(self, parent: str) -> Amount:
        """What those that ``parent`` itself started have spent, all of which have ended."""
        return reduce(plus, (one.taken for one in self.of(parent)), NOTHING)

    def of(self, parent: str) -> tuple[SubJob, ...]:
        """Those that ``parent`` itself started; a fork knows those of the job it is one of."""
        return tuple(one for one in self.known.values() if one.parent == parent)

    def add(self, one: SubJob) -> None:
        """One was started, or found that had been started before."""
        # The first stays: a statement that runs again after a reset finds the one that it has
        # started.
        self.known.setdefault(one.job, one)

    def end(self, ends: Iterable[SubJobEnd]) -> tuple[str, ...]:
        """Book what sub-jobs spent that have ended; those of which it was not known."""
        new: list[str] = []
        for end in ends:
            one = self.known.get(end.job)
            if one is not None and one.end is None:
                self.known[end.job] = one.model_copy(update={"end": end})
                new.append(end.job)
        return tuple(new)

    def asked(self, wish: Wish, spawn: Spawn, left: Amount, *, exact: bool = True) -> SpawnRequest:
        """The question for a wish, of which ``left`` can be lent. ``exact``: a refusal says how
        much that is to the last digit, by which the next wish may go.

        Raises:
            Refused: if there is no place or no budget for it.
        """
        if len(self.known) >= spawn.max:
            raise Refused(
                RuntimeError,
                f"spawn(): this job may start {counted(spawn.max, 'sub-job')}, and has",
            )
        lent = {}
        for kind, usual in (("turns", spawn.turns), ("tokens", spawn.tokens), ("usd", spawn.usd)):
            most, wanted = getattr(left, kind), getattr(wish, kind)
            if most <= 0:
                raise Refused(
                    RuntimeError, f"spawn(): no {kind} of this job's budget are left to be lent"
                )
            if wanted is not None and wanted > most:
                told = [_told(one) if exact else f"{one:g}" for one in (wanted, most)]
                raise Refused(
                    ValueError, f"spawn(): {kind}={told[0]} is more than can be lent: {told[1]}"
                )
            lent[kind] = min(usual, most) if wanted is None else wanted
        # Without what is lent: a parent that was reset may lend less, and is to find the same
        # sub-job.
        call = digest_of([wish.goal, wish.result])
        # The same question put twice means two sub-jobs.
        number = sum(one.call == call for one in self.known.values())
        return SpawnRequest(
            goal=wish.goal, result=wish.result, lent=Amount(**lent), call=call, number=number
        )


def _told(amount: float) -> str:
    short = f"{amount:g}"
    # No budget is larger: of what is asked for, more digits say nothing.
    if isinstance(amount, int):
        return str(amount) if amount <= 10**12 else short
    return short if float(short) == amount else str(amount)


def lendable(budget: Budget, turns: int, tokens: int, usd: float) -> Amount:
    """What of a budget can be lent if so much of it is left."""
    return Amount(
        turns=max(turns - max(budget.turns // KEPT, KEPT_TURNS), 0),
        tokens=max(tokens - budget.tokens // KEPT, 0),
        usd=round(max(usd - budget.usd / KEPT, 0.0), 9),
    )
