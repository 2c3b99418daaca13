"""A batch's budget among jobs whose calls fail at a cost, whose workers die, and whose words to the
batch are late, as are its words to them.

It is never overrun by more than calls in flight over which a worker died, and no job ends for it
while there is enough for its next call.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.spec.models import Amount, Budget
from runtime.base.values import Failed, Usage
from runtime.job.ledger import Ledger, SavedLedger
from runtime.job.purse import (
    NOTHING,
    Ask,
    Granted,
    Purse,
    SavedPurse,
    covers,
    is_spent,
    minus,
)
from tests.tiers.tiers import examples

OWN = Budget(turns=30, usd=5.0)
"""What each job may spend by itself."""

LEAST = Amount(tokens=1, usd=0.000001)
"""As in ``workflows/slices.py``: what a call needs at least whose failed attempts used up a
slice.
"""


def usd(dollars: float) -> Amount:
    """So many dollars, and no other bound."""
    return Amount(usd=round(dollars, 9))


@dataclass
class Call:
    """A call under way: what it may cost at most, what was left when it was sent, of what was
    granted then, and what its attempts used that failed, with those that are ``booked``.
    """

    worst: float
    left: float
    sent: Amount | None
    booked: Failed
    failed: Failed = field(default_factory=Failed)

    @property
    def least(self) -> float:
        """What it costs at most with the shortest reply."""
        return round(self.worst / 4, 9)


@dataclass
class Member:
    """A job as its workflow has it: its call under way, or what it waits for: ``wanted``, since it
    was granted ``before``, for a call that was ``short`` of it.
    """

    ledger: Ledger
    turns: int = 0
    run: str = "first"
    asked: bool = False
    heard: int = 0
    call: Call | None = None
    wanted: Amount | None = None
    before: Amount | None = None
    short: Call | None = None


@dataclass
class Batch:
    """A batch with real ledgers and a real purse, whose jobs go on as ``JobWorkflow`` does.

    ``asks`` of a job arrive in their order, ``answers`` in any. ``paid`` is what the provider got,
    ``lost`` what of it nobody knows of: that of calls over which a worker died.
    """

    budget: float
    places: int
    waiting: list[str]
    purse: Purse = field(init=False)
    members: dict[str, Member] = field(default_factory=dict)
    asks: dict[str, deque[Ask]] = field(default_factory=dict)
    answers: list[tuple[str, Granted]] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    paid: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        self.purse = Purse(usd(self.budget), self.places)

    def start(self) -> None:
        """Start what there is a place for, as the batch does."""
        while self.waiting and len(self.members) < self.places:
            if self.members and self.purse.is_empty:
                return
            job = self.waiting.pop(0)
            ledger = Ledger(OWN, 0.0)
            ledger.granted = self.purse.first(job, usd(OWN.usd))
            if ledger.granted is None:
                ledger.granted, ledger.refused = NOTHING, self.purse.reason()
            self.members[job] = Member(ledger)

    def turn(self, job: str, worst: float) -> None:
        """Begin a turn, if nothing is under way: a call that costs ``worst`` at most."""
        member = self.members[job]
        if member.call is not None or member.wanted is not None:
            return
        if (stop := member.ledger.stop(member.turns, 0.0)) is not None:
            self.end(job, stop.reason)
        elif member.ledger.needs(member.turns) is not None:
            self.wait(job, NOTHING, None)
        else:
            if (wanted := member.ledger.wants(member.turns)) is not None and not member.asked:
                self.ask(job, wanted, waits=False)
            self.send(job, worst)

    def send(self, job: str, worst: float) -> None:
        """Send a call."""
        ledger = self.members[job].ledger
        self.members[job].call = Call(worst, ledger.left()[1], ledger.granted, ledger.failed)

    def attempt(self, job: str, share: float, fate: str) -> None:
        """An attempt at the call under way, if it fits; it costs a ``share`` of its worst case, and
        is answered, fails, or its worker dies.
        """
        member = self.members[job]
        if (call := member.call) is None:
            return
        room = call.left - call.failed.cost_usd
        if call.least > room + 1e-9:
            self.refused(job, usd(call.least))
            return
        # Where less is left, a shorter reply is asked for.
        cost = round(min(call.worst, room) * share, 9)
        self.paid += cost
        if fate == "died":
            # Its prompt is known and booked; of the reply nobody knows.
            known = round(cost * 0.5, 9)
            self.lost += cost - known
            call.failed += Failed(attempts=1, cost_usd=known)
        elif fate == "failed":
            call.failed += Failed(attempts=1, cost_usd=cost)
        else:
            member.call = None
            member.ledger.add_failed(call.booked + call.failed)
            member.ledger.add_call(Usage(prompt=1), cost)
            member.ledger.begin_turn()
            member.turns += 1
            return
        if call.failed.cost_usd >= call.left > 0:
            self.refused(job, LEAST)

    def refused(self, job: str, wanted: Amount) -> None:
        """What is left does not hold the call, or another attempt at it."""
        member = self.members[job]
        call, member.call = member.call, None
        assert call is not None
        member.ledger.add_failed(call.booked + call.failed)
        if wanted == LEAST and (stop := member.ledger.stop(member.turns, 0.0)) is not None:
            self.end(job, stop.reason)
        else:
            self.wait(job, wanted, call)

    def wait(self, job: str, wanted: Amount, short: Call | None) -> None:
        """Wait until what was granted holds so much."""
        member = self.members[job]
        member.wanted, member.short, member.before = wanted, short, member.ledger.granted
        self.go_on(job)

    def go_on(self, job: str) -> None:
        """A job that waits looks at what it has."""
        member = self.members[job]
        if member.wanted is None:
            return
        more = member.ledger.needs(member.turns, member.wanted)
        if more is not None:
            self.ask(job, more, waits=True)
            return
        call, member.wanted, member.short = member.short, None, None
        if call is None:
            return
        now = member.ledger.granted
        # The second: what was asked for ahead may have come while the call was under way.
        if now != member.before or now != call.sent:
            self.send(job, call.worst)
            return
        self.end(job, member.ledger.refused, call.least)

    def ask(self, job: str, wanted: Amount, *, waits: bool) -> None:
        """A job's wish is on its way."""
        member = self.members[job]
        member.asked = True
        ask = Ask(job=job, wanted=wanted, waits=waits, run=member.run, heard=member.heard)
        self.asks.setdefault(job, deque()).append(ask)

    def hear(self, job: str) -> None:
        """A job's next wish arrives."""
        if self.asks.get(job):
            self.purse.ask(self.asks[job].popleft())
            self.answer()

    def answer(self) -> None:
        """The batch's answers are on their way."""
        self.answers += self.purse.settle().items()

    def tell(self, number: int) -> None:
        """One of the answers arrives."""
        job, granted = self.answers.pop(number)
        if (member := self.members.get(job)) is not None:
            member.asked, member.heard = False, member.heard + 1
            member.ledger.answered(granted)
            self.go_on(job)

    def end(self, job: str, reason: str, least: float = 0.0, *, known: bool = True) -> None:
        """A job ends; where it is not ``known`` what it spent, its worker's last words are lost."""
        ledger = self.members.pop(job).ledger
        if known and reason == ledger.refused:
            self.check_refused(job, ledger, usd(least))
        self.ended[job] = reason
        self.asks.pop(job, None)
        self.purse.ended(job, usd(ledger.cost_usd) if known else None)
        self.answer()

    def check_refused(self, job: str, ledger: Ledger, call: Amount) -> None:
        """A job ends for want of a slice: neither what it was granted, what is on its way
        included, nor what is free holds its next call; unless its own budget does not.
        """
        if ledger.own_left()[1] < (call.usd or 0):
            return
        left = minus(self.purse.held.get(job, NOTHING), usd(ledger.cost_usd))
        assert is_spent(left) or not covers(left, call), "it was granted enough"
        free = self.purse.free
        assert is_spent(free) or not covers(free, minus(call, left)), "its batch has enough"

    def killed(self, job: str) -> None:
        """A job is ended from outside, with whatever is under way."""
        self.end(job, "", known=False)

    def continued(self, job: str) -> None:
        """A job goes on in another run, between two turns, of which each answer has come; so does
        the batch.
        """
        self.purse = Purse.restored(
            SavedPurse.model_validate_json(self.purse.saved().model_dump_json())
        )
        member = self.members[job]
        coming = any(name == job for name, _ in self.answers)
        if member.call is not None or member.wanted is not None or coming:
            return
        before, member.ledger = member.ledger, Ledger(OWN, 0.0)
        saved = before.saved().model_dump_json()
        member.ledger.restore(SavedLedger.model_validate_json(saved))
        member.ledger.granted, member.ledger.refused = before.granted, before.refused
        member.run, member.asked, member.heard = f"{member.run}+", False, 0

    def reset(self, job: str) -> None:
        """A job is reset between two turns: its new run has heard what the old one had."""
        member = self.members[job]
        coming = any(name == job for name, _ in self.answers) or self.asks.get(job)
        if member.call is None and member.wanted is None and not coming:
            member.run += "~"

    def check(self) -> None:
        """Only what nobody knows of may be beyond the budget."""
        assert self.paid - self.lost <= self.budget + 1e-5

    def possible(self) -> list[tuple[str, str]]:
        """What may happen next: to which job, or with which answer."""
        able: list[tuple[str, str]] = [("hear", job) for job, asks in self.asks.items() if asks]
        able += [("tell", str(number)) for number in range(len(self.answers))]
        for job, member in self.members.items():
            if member.call is not None:
                able.append(("attempt", job))
            elif member.wanted is None:
                able.append(("turn", job))
        return able


WORST = st.floats(0.01, 1.5).map(lambda worst: round(worst, 6))
SHARES = st.just(1.0) | st.floats(0, 1)
FATES = st.sampled_from(["answered", "answered", "failed", "died"])
RARELY = st.integers(0, 19)


@settings(max_examples=examples(300))
@given(data=st.data(), budget=st.floats(0.05, 6), places=st.integers(1, 4), jobs=st.integers(1, 6))
def test_no_batch_spends_more_than_its_budget(
    data: st.DataObject, budget: float, places: int, jobs: int
) -> None:
    """Whatever calls cost, who fails, dies or is late: and all jobs end."""
    batch = Batch(round(budget, 6), places, [f"job-{n}" for n in range(jobs)])
    for _ in range(data.draw(st.integers(0, 60))):
        batch.start()
        if not (able := batch.possible()):
            break
        what, which = data.draw(st.sampled_from(able))
        match what:
            case "hear":
                batch.hear(which)
            case "tell":
                batch.tell(int(which))
            case "turn" if (rare := data.draw(RARELY)) < 3:
                (batch.killed, batch.continued, batch.reset)[rare](which)
            case "turn":
                batch.turn(which, data.draw(WORST))
            case _:
                batch.attempt(which, data.draw(SHARES), data.draw(FATES))
        batch.check()
    for _ in range(1_000):
        batch.start()
        for job in list(batch.members):
            batch.hear(job)
            while batch.answers:
                batch.tell(0)
            if job in batch.members:
                batch.turn(job, 0.5)
            if job in batch.members:
                batch.attempt(job, 1.0, "answered")
        if not batch.members and not batch.waiting:
            break
    assert len(batch.ended) == jobs
    batch.check()
