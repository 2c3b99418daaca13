"""What a job lends its sub-jobs: never more than it has, and what comes back can be lent again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_loop import PlainLoop, statements

from runtime.base.spec.models import Amount, Budget, Spawn
from runtime.base.values import Usage
from runtime.context.outcomes import Refused
from runtime.context.sub_job_end import SubJobEnd
from runtime.interpreter.spawning import Wish
from runtime.job.ledger import Ledger
from runtime.job.sub_jobs import SubJob, SubJobs

BUDGET = Budget(turns=40, tokens=10_000, usd=10.0)
SPAWN = Spawn(max=6, turns=8, tokens=2_000, usd=2.0)

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["call", "spawn", "end", "save"]),
        st.integers(0, 12),
        st.integers(0, 4_000),
        st.integers(0, 40).map(lambda dimes: dimes / 10),
    ),
    max_size=40,
)


def wish(
    goal: str = "x", turns: int | None = None, tokens: int | None = None, usd: float | None = None
) -> Wish:
    """A call of ``spawn``."""
    return Wish(goal=goal, result=None, turns=turns, tokens=tokens, usd=usd)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("tokens=-1", "spawn(): tokens is a whole number from 1 on"),
        ("tokens=10**12", "spawn(): tokens=1000000000000 is more than can be lent: 89"),
        ("tokens=10**400", "spawn(): tokens is more than can be lent"),
        ("turns=10**5000", "spawn(): turns is more than can be lent"),
        *(
            (f"usd={usd}", "spawn(): usd is a number of US dollars above 0")
            for usd in ("10**400", "float('inf')", "float('nan')")
        ),
    ],
)
def test_a_wish_that_nothing_can_hold_is_an_exception(
    workspace: Path, asked: str, said: str
) -> None:
    """Whatever number a statement asks for, it is told, and the job goes on."""
    source = f"try:\n    spawn('x', {asked})\nexcept ValueError as error:\n    finish(str(error))"
    loop = PlainLoop(workspace, statements(source), options={"spawn": SPAWN}).run()
    assert loop.stop is not None
    # What can be lent goes by what the call before used.
    assert str(loop.stop.result).startswith(said)


@pytest.mark.parametrize(
    ("most", "wanted", "told"),
    [
        (Amount(turns=9, tokens=1_799_123, usd=1.0), {"tokens": 1_799_124}, "1799123"),
        (Amount(turns=9, tokens=9, usd=1.2345678), {"usd": 1.2345679}, "1.2345678"),
        (Amount(turns=9, tokens=9, usd=2.0), {"usd": 3.0}, "2"),
    ],
)
def test_what_can_be_lent_is_told_to_the_last_digit(
    most: Amount, wanted: dict[str, Any], told: str
) -> None:
    """What is told can be asked for; a job that a build of before began is told as it was."""
    asking = wish()._replace(**wanted)
    with pytest.raises(Refused) as refused:
        SubJobs().asked(asking, SPAWN, most)
    ((kind, amount),) = wanted.items()
    assert str(refused.value).endswith(f"{kind}={amount:.9g} is more than can be lent: {told}")
    said: Any = float(told) if kind == "usd" else int(told)
    most_of_it = wish()._replace(**{kind: said})
    assert getattr(SubJobs().asked(most_of_it, SPAWN, most).lent, kind) == getattr(most, kind)
    with pytest.raises(Refused) as before:
        SubJobs().asked(asking, SPAWN, most, exact=False)
    assert str(before.value).endswith(f"lent: {getattr(most, kind):g}")


@given(ACTIONS)
def test_a_job_and_its_sub_jobs_together_keep_its_budget(
    actions: list[tuple[str, int, int, float]],
) -> None:
    """Whatever is spent, lent, given back and asked for, and however often the job is saved."""
    ledger, turn, names = Ledger(BUDGET, started=0.0), 1, 0
    for what, turns, tokens, usd in actions:
        open_ = [one for one in ledger.sub_jobs.known.values() if one.end is None]
        if what == "call" and ledger.stop(turn, 0.0) is None:
            most_tokens, most_usd = ledger.left()
            spent = Usage(prompt=min(tokens, most_tokens))
            ledger.add_call(spent, min(usd, most_usd))
            turn += 1
        elif what == "spawn" and ledger.stop(turn, 0.0) is None:
            asked = wish(turns=turns or None, tokens=tokens or None, usd=usd or None)
            try:
                request = ledger.sub_jobs.asked(asked, SPAWN, ledger.lendable(turn))
            except Refused:
                continue
            names += 1
            ledger.sub_jobs.add(
                SubJob(job=f"b/{names}", parent="b/a", call=request.call, lent=request.lent)
            )
        elif what == "end" and open_:
            lent = open_[0].lent
            end = SubJobEnd(
                job=open_[0].job,
                status="succeeded",
                turns=min(turns, lent.turns or 0),
                tokens=min(tokens, lent.tokens or 0),
                usd=min(usd, lent.usd or 0.0),
            )
            assert ledger.sub_jobs.end([end, end]) == (open_[0].job,)
        elif what == "save":
            saved, ledger = ledger.saved(), Ledger(BUDGET, started=0.0)
            ledger.restore(saved)
        taken = ledger.sub_jobs.taken
        assert turn + (taken.turns or 0) <= BUDGET.turns
        assert ledger.usage.total + (taken.tokens or 0) <= BUDGET.tokens
        assert ledger.cost_usd + (taken.usd or 0.0) <= BUDGET.usd + 1e-6
        assert len(ledger.sub_jobs.known) <= SPAWN.max


def test_what_a_sub_job_did_not_spend_comes_back() -> None:
    """It is reserved while the sub-job is open; then only what was spent is gone."""
    ledger = Ledger(BUDGET, started=0.0)
    request = ledger.sub_jobs.asked(wish(), SPAWN, ledger.lendable(1))
    assert request.lent == Amount(turns=8, tokens=2_000, usd=2.0)
    ledger.sub_jobs.add(SubJob(job="b/1", parent="b/a", call=request.call, lent=request.lent))
    assert ledger.left() == (8_000, 8.0)
    assert ledger.spending(2, 0.0).line().startswith("[budget: turn 2 of 32; 2,000 of 10,000")
    end = SubJobEnd(job="b/1", status="failed", turns=3, tokens=500, usd=0.25)
    assert ledger.sub_jobs.end([end]) == ("b/1",)
    assert ledger.left() == (9_500, 9.75)
    assert ledger.sub_jobs.spent("b/a") == Amount(turns=3, tokens=500, usd=0.25)
    assert ledger.sub_jobs.spent("b/other") == Amount(turns=0, tokens=0, usd=0.0)


def test_a_sub_job_of_whose_spending_nobody_knows_has_spent_what_it_was_lent() -> None:
    """It is not taken for one that cost nothing, also not after a checkpoint."""
    ledger = Ledger(BUDGET, started=0.0)
    request = ledger.sub_jobs.asked(wish(), SPAWN, ledger.lendable(1))
    ledger.sub_jobs.add(SubJob(job="b/1", parent="b/a", call=request.call, lent=request.lent))
    ledger.sub_jobs.end([SubJobEnd(job="b/1", status="failed", lost=True)])
    again = Ledger(BUDGET, started=0.0)
    again.restore(ledger.saved())
    assert again.left() == (8_000, 8.0)
    assert again.sub_jobs.spent("b/a") == request.lent


def test_a_tenth_of_the_budget_stays_with_the_job() -> None:
    """A job that has lent all that it may can still sum up."""
    ledger = Ledger(BUDGET, started=0.0)
    left = ledger.lendable(1)
    assert left == Amount(turns=35, tokens=9_000, usd=9.0)
    all_of_it = wish(turns=35, tokens=9_000, usd=9.0)
    request = ledger.sub_jobs.asked(all_of_it, SPAWN, left)
    ledger.sub_jobs.add(SubJob(job="b/1", parent="b/a", call=request.call, lent=request.lent))
    assert ledger.stop(1, 0.0) is None
    with pytest.raises(Refused) as refused:
        ledger.sub_jobs.asked(wish(), SPAWN, ledger.lendable(1))
    assert (
        refused.value.raised.message == "spawn(): no turns of this job's budget are left to be lent"
    )


def test_equal_questions_are_counted() -> None:
    """So that two sub-jobs with one goal are two, and the same two when they are asked for
    again.
    """
    ledger = Ledger(BUDGET, started=0.0)
    numbers = []
    for name, goal in enumerate(["x", "y", "x", "x"]):
        request = ledger.sub_jobs.asked(wish(goal, turns=1, tokens=1), SPAWN, ledger.lendable(1))
        numbers.append(request.number)
        ledger.sub_jobs.add(
            SubJob(job=f"b/{name}", parent="b/a", call=request.call, lent=request.lent)
        )
    assert numbers == [0, 0, 1, 2]
