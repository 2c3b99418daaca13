"""What a job has spent of its budgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from runtime.base.dollars import dollars
from runtime.base.durations import format_duration
from runtime.base.plurals import counted
from runtime.base.spec.models import Amount, Budget
from runtime.base.values import Failed, Usage, Value
from runtime.job.purse import NOTHING, Granted, covers, is_spent, minus, plus, within
from runtime.job.results import Spending
from runtime.job.stops import JobStatus, Stop
from runtime.job.sub_jobs import SubJob, SubJobs, lendable


class SavedLedger(Value):
    """What a checkpoint has of a ledger.

    Jobs that were saved before work was counted have none of it behind them.
    """

    started: float
    budget: Budget
    usage: Usage
    cost_usd: float
    untold: tuple[tuple[Usage, float], ...] = ()
    worked: float = 0.0
    call: tuple[int, float] = (0, 0.0)
    sub_jobs: tuple[SubJob, ...] = ()


HELD_AT_MOST, PARTS = 2, 4
"""Of what is left, one part in so many is held at most for calls that nobody waits for; and of what
of it is not held yet, each call gets one part in so many.
"""


@dataclass
class Ledger:
    """Spending against ``budget``.

    ``started`` is seconds since the epoch, ``worked`` the seconds that were worked for the job.

    ``untold`` is what was spent in the background and no step records yet, ``failed`` what of the
    turn's spending came to nothing. ``repeats``: all that the job does now is answered from a
    record. The record says how long that goes on, and no time does. ``call`` is what the last call
    of a turn took, in tokens and US dollars. ``granted`` is what the job was granted in all of its
    batch's budget (None: that has none), ``refused`` why there is no more. ``until`` is when the
    batch's time is over, as ISO 8601 has it (empty: never). ``sub_jobs`` have of the budget what
    they were lent. ``held`` is what calls that nobody waits for may spend, in tokens and US
    dollars: no other call may.
    """

    budget: Budget
    started: float
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    untold: list[tuple[Usage, float]] = field(default_factory=list)
    failed: Failed = field(default_factory=Failed)
    worked: float = 0.0
    call: tuple[int, float] = (0, 0.0)
    repeats: bool = False
    granted: Amount | None = None
    refused: str = ""
    until: str = ""
    sub_jobs: SubJobs = field(default_factory=SubJobs)
    held: dict[str, tuple[int, float]] = field(default_factory=dict)

    # A turn begins with no failed attempts, whoever follows a record says so, a run's order has
    # what was granted until then, and what nobody waits for is begun anew.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {"failed", "repeats", "granted", "refused", "until", "held"}
    )

    def saved(self) -> SavedLedger:
        """For a checkpoint."""
        return SavedLedger(
            started=self.started,
            budget=self.budget,
            usage=self.usage,
            cost_usd=self.cost_usd,
            untold=tuple(self.untold),
            worked=self.worked,
            call=self.call,
            sub_jobs=tuple(self.sub_jobs.known.values()),
        )

    def restore(self, saved: SavedLedger) -> None:
        """As it was saved."""
        self.started, self.budget = saved.started, saved.budget
        self.usage, self.cost_usd = saved.usage, saved.cost_usd
        self.untold, self.worked = list(saved.untold), saved.worked
        self.call = saved.call
        self.sub_jobs = SubJobs({one.job: one for one in saved.sub_jobs})

    def begin_turn(self) -> None:
        """No attempt has failed yet."""
        self.failed = Failed()

    def add(self, usage: Usage, cost_usd: float) -> None:
        """Book one model call."""
        self.usage += usage
        # Rounded each time: sums of floats would differ by how they were grouped, as in a replay.
        self.cost_usd = round(self.cost_usd + cost_usd, 9)

    def add_call(self, usage: Usage, cost_usd: float) -> None:
        """Book the call of a turn."""
        self.add(usage, cost_usd)
        self.call = (usage.total, cost_usd)

    def add_failed(self, failed: Failed) -> None:
        """Book the failed attempts of the turn's calls, of which there have been ``failed`` in all
        until now.
        """
        # Each error tells all attempts of the turn so far: only what is new is booked.
        if failed.attempts <= self.failed.attempts:
            return
        more = failed.since(self.failed)
        self.add(more.usage, more.cost_usd)
        self.failed = failed

    def add_background(self, usage: Usage, cost_usd: float) -> None:
        """Book what has no step of its own in the job.

        The next step says so: a replay has no other way to know.

        That are calls that nobody waited for, and summaries that came to nothing.
        """
        if usage.total or cost_usd:
            self.add(usage, cost_usd)
            self.untold.append((usage, cost_usd))

    def to_tell(self) -> tuple[Usage, float]:
        """All that no step records yet, in one."""
        usage, cost = Usage(), 0.0
        for more, more_usd in self.untold:
            usage, cost = usage + more, round(cost + more_usd, 9)
        return usage, cost

    def told(self, number: int) -> None:
        """A step records the first ``number`` of what no step recorded."""
        del self.untold[:number]

    def hold(self, call: str) -> tuple[int, float]:
        """Set aside what ``call``, which nobody waits for, may spend: tokens and US dollars.

        A small part, so that the others, and the turns meanwhile, have room as well.
        """
        tokens, usd = self._granted_left()
        held_tokens, held_usd = self._all_held
        self.held[call] = (
            max(tokens // HELD_AT_MOST - held_tokens, 0) // PARTS,
            round(max(usd / HELD_AT_MOST - held_usd, 0.0) / PARTS, 9),
        )
        return self.held[call]

    def release(self, call: str) -> None:
        """A call that nobody waited for has ended."""
        self.held.pop(call, None)

    @property
    def _all_held(self) -> tuple[int, float]:
        return (
            sum(tokens for tokens, _ in self.held.values()),
            round(sum(usd for _, usd in self.held.values()), 9),
        )

    def left(self) -> tuple[int, float]:
        """Tokens and US dollars that may still be spent, and are held for no other call."""
        (tokens, usd), (held_tokens, held_usd) = self._granted_left(), self._all_held
        return tokens - held_tokens, round(usd - held_usd, 9)

    def _granted_left(self) -> tuple[int, float]:
        tokens, usd = self.own_left()
        if self.granted is None or self.repeats:
            return tokens, usd
        # Only what a call takes is compared here: turns of the slice are no matter, so none are
        # given.
        slice = self.slice_left(0)
        return (
            tokens if slice.tokens is None else min(tokens, slice.tokens),
            usd if slice.usd is None else min(usd, slice.usd),
        )

    def own_left(self) -> tuple[int, float]:
        """Tokens and US dollars of the job's own budget that may still be spent."""
        tokens, usd = self._used
        return self.budget.tokens - tokens, round(self.budget.usd - usd, 9)

    def lendable(self, turns: int) -> Amount:
        """What may be lent to a sub-job in turn ``turns``."""
        left = self.budget.turns - turns - (self.sub_jobs.taken.turns or 0)
        return lendable(self.budget, left, *self.own_left())

    def can_lend(self, lent: Amount) -> bool:
        """Whether the job's own budget has ``lent`` beside what is held; a record's was lent."""
        (tokens, usd), (held_tokens, held_usd) = self.own_left(), self._all_held
        has = tokens - held_tokens >= (lent.tokens or 0) and usd - held_usd >= (lent.usd or 0.0)
        return has or self.repeats

    @property
    def _used(self) -> tuple[int, float]:
        """Tokens and US dollars that the job spent, and that its sub-jobs have."""
        lent = self.sub_jobs.taken
        return self.usage.total + (lent.tokens or 0), round(self.cost_usd + (lent.usd or 0.0), 9)

    def slice_left(self, turns: int) -> Amount:
        """What is left, after ``turns`` turns, of what the job was granted of its batch's budget;
        nothing is bounded without.
        """
        tokens, usd = self._used
        turns += self.sub_jobs.taken.turns or 0
        # Releases before booked whatever a provider reported, also less than nothing.
        spent = Amount(turns=turns, tokens=max(tokens, 0), usd=max(usd, 0.0))
        return Amount() if self.granted is None else minus(self.granted, spent)

    def wants(self, turns: int) -> Amount | None:
        """What to ask for before it is needed: what is granted does not hold two more calls like
        the last.
        """
        if self.granted is None or self.refused or self.repeats:
            return None
        tokens, usd = self.call
        # Two: one for the call that follows, one for the time until the answer is here.
        two = Amount(turns=2, tokens=max(2 * tokens, 0), usd=max(round(2 * usd, 9), 0.0))
        left = self.slice_left(turns)
        return two if is_spent(left) or not covers(left, two) else None

    def needs(self, turns: int, call: Amount = NOTHING) -> Amount | None:
        """What must be granted before ``call`` can be made; None if it can, or nothing more will
        be.
        """
        if self.granted is None or self.refused or self.repeats:
            return None
        left = self.slice_left(turns)
        if not is_spent(left) and covers(left, call):
            return None
        return minus(Amount(turns=max(call.turns or 0, 1), tokens=call.tokens, usd=call.usd), left)

    def answered(self, answer: Granted, *, frees: bool = True) -> None:
        """Take the batch's answer to a wish for more. ``frees``: what it bounds no more may be
        spent from now on.
        """
        if answer.slice is None:
            self.refused = answer.reason
        elif self.granted is not None:
            before = within(self.granted, answer.slice) if frees else self.granted
            self.granted = plus(before, answer.slice)

    def work(self, seconds: float) -> None:
        """Book time that somebody worked for the job, or that it asked to let pass.

        Time in which nobody was there is none.
        """
        # Rounded each time, as costs are.
        self.worked = round(self.worked + max(seconds, 0.0), 3)

    def wall_left(self) -> float:
        """Seconds of work until the wall budget is spent."""
        return self.budget.wall_seconds - self.worked

    def deadline_left(self, now: float) -> float | None:
        """Seconds by the clock until the deadline, or the end of the batch's time, if there is
        one.
        """
        own, batchs = self.own_deadline(), self._batchs_deadline()
        ends = [end for end in (own, batchs) if end is not None]
        return min(ends) - now if ends else None

    def own_deadline(self) -> float | None:
        """When the job's own deadline is, in seconds since the epoch, if it has one."""
        deadline = self.budget.deadline
        if isinstance(deadline, str):
            return datetime.fromisoformat(deadline).timestamp()
        return None if deadline is None else self.started + deadline

    def _batchs_deadline(self) -> float | None:
        return datetime.fromisoformat(self.until).timestamp() if self.until else None

    def outlast(self, now: float, since: float) -> None:
        """If the batch's time is over ``now``, the job has what it had left of it so many seconds
        before.
        """
        end = self._batchs_deadline()
        if end is not None and end <= now:
            self.until = datetime.fromtimestamp(end + since, UTC).isoformat()

    def time_left(self, now: float) -> float:
        """Seconds that the job may go on at most from ``now`` on."""
        deadline = self.deadline_left(now)
        return self.wall_left() if deadline is None else min(self.wall_left(), deadline)

    def time_reason(self, now: float) -> str:
        """The reason of a job that ran out of time: of what less is left."""
        left = self.deadline_left(now)
        if left is None or self.wall_left() <= left:
            return f"the wall budget of {self.budget.wall_seconds:.15g} s is spent"
        return self.deadline_reason()

    def wait_reason(self, now: float) -> str:
        """The reason of a job that has time left, and another attempt would come after that."""
        left, wall = self.deadline_left(now), self.wall_left()
        if left is None or wall <= left:
            budget = f"the wall budget of {self.budget.wall_seconds:.15g} s"
            return (
                f"{budget} has {format_duration(round(wall))} left, too little for another attempt"
            )
        if self._is_batchs():
            return f"the time of the batch's budget ends before another attempt (at {self.until})"
        return f"the deadline ({self._deadline()}) comes before another attempt"

    def deadline_reason(self) -> str:
        """The reason of a job whose deadline ended it."""
        if self._is_batchs():
            return f"the time of the batch's budget is over (since {self.until})"
        return f"the deadline ({self._deadline()}) has passed"

    def _is_batchs(self) -> bool:
        """Whether the end of the batch's time comes before the job's own deadline."""
        own, batchs = self.own_deadline(), self._batchs_deadline()
        return batchs is not None and (own is None or batchs <= own)

    def _deadline(self) -> str | None:
        """The job's own deadline in words."""
        deadline = self.budget.deadline
        if isinstance(deadline, float):
            return f"{format_duration(deadline)} after the job's start"
        return deadline

    def stop(self, turns: int, now: float) -> Stop | None:
        """The budget that is spent after ``turns`` turns, if one is."""
        budget, (tokens, usd) = self.budget, self._used
        if turns + (self.sub_jobs.taken.turns or 0) >= budget.turns:
            return Stop(JobStatus.BUDGET, f"the budget of {counted(budget.turns, 'turn')} is spent")
        if tokens >= budget.tokens:
            return Stop(
                JobStatus.BUDGET,
                f"the budget of {counted(budget.tokens, 'token')} is spent ({tokens:,} used)",
            )
        if usd >= budget.usd:
            return Stop(
                JobStatus.BUDGET,
                f"the budget of {dollars(budget.usd)} is spent ({dollars(usd)} used)",
            )
        # What a record answers has been paid for: neither grants nor time of today may end it.
        if self.refused and is_spent(self.slice_left(turns)) and not self.repeats:
            return Stop(JobStatus.BUDGET, self.refused)
        if not self.repeats and self.time_left(now) <= 0:
            return Stop(JobStatus.BUDGET, self.time_reason(now))
        return None

    def spending(self, turn: int, now: float) -> Spending:
        """For the budget line of turn ``turn``'s prompt.

        What failed in the turn is told in the next, as in a replay, where none fails.
        """
        tokens, usd = self._used
        return Spending(
            turn=turn,
            turns=self.budget.turns - (self.sub_jobs.taken.turns or 0),
            tokens_used=tokens - self.failed.usage.total,
            tokens=self.budget.tokens,
            usd_used=round(usd - self.failed.cost_usd, 9),
            usd=self.budget.usd,
            wall_left=self.wall_left(),
            deadline_left=self.deadline_left(now),
            wall=self.budget.wall_seconds,
            call_tokens=self.call[0],
            call_usd=self.call[1],
        )
