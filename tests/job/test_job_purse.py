"""A batch's budget in slices: it is never overrun by more than the calls in flight."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.spec.models import Amount, Budget
from runtime.base.values import Usage
from runtime.job.ledger import Ledger
from runtime.job.purse import NOTHING, Ask, Granted, Purse, SavedPurse
from runtime.job.results import LAST_TURN, Spending
from runtime.job.stops import JobStatus
from tests.tiers.tiers import examples


def usd(dollars: float) -> Amount:
    """So many dollars, and no other bound."""
    return Amount(usd=dollars)


def test_a_slice_is_a_part_of_an_even_share() -> None:
    """So the first jobs leave something for those that come later."""
    purse = Purse(Amount(turns=80, tokens=8_000, usd=8.0), places=2)
    assert purse.first("a", Amount(turns=40, tokens=500, usd=5.0)) == Amount(
        turns=10, tokens=500, usd=1.0
    )
    assert purse.free == Amount(turns=70, tokens=7_500, usd=7.0)


def test_what_a_job_leaves_is_there_for_others() -> None:
    """What nobody knows of was spent."""
    purse = Purse(usd(8.0), places=1)
    purse.first("a", usd(5.0))
    purse.first("b", usd(5.0))
    purse.ended("a", usd(0.5))
    purse.ended("b", None)
    assert purse.free == usd(5.5)


def test_who_wants_more_waits_for_those_that_work() -> None:
    """And gets it as soon as one of them ends."""
    purse = Purse(usd(2.0), places=1)
    for job in ("a", "b", "c", "d"):
        purse.first(job, usd(5.0))
    purse.ask(Ask(job="a", wanted=usd(0.25), waits=True))
    assert purse.settle() == {}
    purse.ended("b", usd(0.1))
    assert purse.settle() == {"a": Granted(slice=usd(0.4))}


def test_where_all_wait_one_is_refused() -> None:
    """The last who asked ends, with the reason, and leaves the others what it has."""
    purse = Purse(usd(1.0), places=1)
    for job in ("a", "b", "c", "d"):
        purse.first(job, usd(5.0))
    for job in ("c", "a", "b"):
        purse.ask(Ask(job=job, wanted=usd(0.2), waits=True))
    purse.ask(Ask(job="d", wanted=usd(0.2), waits=False))
    assert purse.settle() == {}
    purse.ask(Ask(job="d", wanted=usd(0.2), waits=True))
    reason = "what is left of the batch's budget ($1.00) holds no other call"
    assert purse.settle() == {"d": Granted(reason=reason)}
    purse.ended("d", usd(0.0))
    assert purse.settle() == {"c": Granted(slice=usd(0.25))}


@dataclass
class Model:
    """A batch of jobs that call, fail, crash and end as they like, with real ledgers and a real
    purse. ``spent`` is what was paid, ``flying`` what calls in flight may cost yet.
    """

    purse: Purse
    places: int
    waiting: list[str]
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    spent: float = 0.0
    ended: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start what there is a place for, as the batch does."""
        while self.waiting and len(self.ledgers) < self.places:
            if self.ledgers and self.purse.is_empty:
                return
            job = self.waiting.pop(0)
            ledger = Ledger(Budget(turns=30, usd=5.0), 0.0)
            ledger.granted = self.purse.first(job, usd(5.0))
            if ledger.granted is None:
                ledger.granted, ledger.refused = NOTHING, self.purse.reason()
            self.ledgers[job], self.turns[job] = ledger, 0

    def end(self, job: str, reason: str, *, crashed: bool = False) -> None:
        """A job ends; of one that crashed nobody knows what it spent."""
        ledger = self.ledgers.pop(job)
        self.ended[job] = reason
        self.purse.ended(job, None if crashed else usd(ledger.cost_usd))
        self.tell()

    def tell(self) -> None:
        """What the batch grants reaches the jobs."""
        for job, granted in self.purse.settle().items():
            ledger = self.ledgers[job]
            if granted.slice is None:
                ledger.refused = granted.reason
            else:
                assert ledger.granted is not None
                ledger.granted = usd((ledger.granted.usd or 0) + (granted.slice.usd or 0))

    def step(self, job: str, worst: float, share: float, fate: str) -> None:
        """One turn of a job: a call whose worst case is ``worst``, of which it costs a
        ``share``.
        """
        ledger, turn = self.ledgers[job], self.turns[job]
        if (stop := ledger.stop(turn, 0.0)) is not None:
            assert stop.status is JobStatus.BUDGET
            self.end(job, stop.reason)
            return
        need = ledger.needs(turn, usd(worst))
        if need is not None:
            self.purse.ask(Ask(job=job, wanted=need, waits=True))
            self.tell()
            return
        if ledger.left()[1] < worst:  # what the activity finds
            self.end(job, ledger.refused or "the job's own budget")
            return
        cost = round(worst * share, 9)
        self.spent += cost
        ledger.add_call(Usage(prompt=1), cost)
        self.turns[job] += 1
        if fate != "goes on":
            self.end(job, fate, crashed=fate == "crashed")


@settings(max_examples=examples(200))
@given(data=st.data(), budget=st.floats(0.01, 20), places=st.integers(1, 6), jobs=st.integers(1, 9))
def test_no_batch_spends_more_than_its_budget(
    data: st.DataObject, budget: float, places: int, jobs: int
) -> None:
    """Whatever the calls cost, whoever ends or crashes when: and all jobs end."""
    purse = Purse(usd(round(budget, 6)), places)
    model = Model(purse, places, [f"job-{n}" for n in range(jobs)])
    names = st.sampled_from(model.waiting)
    fates = st.sampled_from(["goes on", "goes on", "goes on", "finished", "crashed"])
    for _ in range(data.draw(st.integers(0, 60))):
        model.start()
        if (job := data.draw(names)) in model.ledgers:
            worst, share = data.draw(st.floats(0.0001, 3)), data.draw(st.floats(0, 1))
            model.step(job, round(worst, 6), share, data.draw(fates))
        model.purse = Purse.restored(SavedPurse.model_validate_json(purse_json(model.purse)))
        assert model.spent <= budget + 1e-5
    for _ in range(10_000):
        model.start()
        for job in list(model.ledgers):
            model.step(job, 0.5, 1.0, "goes on")
        if not model.ledgers and not model.waiting:
            break
    assert len(model.ended) == jobs
    assert model.spent <= budget + 1e-5


def purse_json(purse: Purse) -> str:
    """As the batch's next run gets it."""
    return purse.saved().model_dump_json()


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"turn": 3}, "60m left]"),
        ({"turn": 37}, "; at most a tenth of the turns is left: finish soon]"),
        (
            {"turn": 3, "usd_used": 4.6, "tokens_used": 950, "call_tokens": 5},
            "; at most a tenth of the tokens and dollars is left: finish soon]",
        ),
        ({"turn": 40}, f"{LAST_TURN}]"),
        ({"turn": 3, "tokens_used": 500, "call_tokens": 251}, f"{LAST_TURN}]"),
        ({"turn": 3, "usd_used": 4.5, "call_usd": 0.3}, f"{LAST_TURN}]"),
    ],
    ids=["plenty", "few turns", "few tokens and dollars", "turns", "tokens", "dollars"],
)
def test_the_model_is_warned_before_a_budget_ends(fields: dict[str, float], ending: str) -> None:
    """Below a tenth; and told of its last turn, while it can hand in what it has."""
    plain = {"turns": 40, "tokens_used": 0, "tokens": 1_000, "usd_used": 0.0, "usd": 5.0}
    spending = Spending(**{**plain, "wall_left": 3_540.0, "wall": 3_600.0, **fields})  # type: ignore[arg-type]
    line = spending.line()
    assert line.endswith(ending.replace("60m", "59m")), line
