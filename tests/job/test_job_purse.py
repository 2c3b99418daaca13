"""A batch's budget in slices: who is granted how much; and what the model is told is left."""

from __future__ import annotations

import pytest

from runtime.base.spec.models import Amount
from runtime.job.purse import Ask, Granted, Purse, SavedPurse
from runtime.job.results import LAST_TURN, Spending


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


def test_a_wish_without_what_is_new_is_what_older_workers_read() -> None:
    """They refuse fields that they do not know."""
    assert Ask(job="a", wanted=usd(0.1), waits=True).model_dump().keys() == {
        "job",
        "wanted",
        "waits",
    }
    saved = Purse(usd(1.0), places=1).saved()
    assert saved.model_dump().keys() == {"budget", "places"}
    assert SavedPurse.model_validate_json(saved.model_dump_json()) == saved


def test_a_run_that_was_reset_has_heard_what_its_history_holds() -> None:
    """A wish that crosses the first answer to it is none for another slice."""
    purse = Purse(usd(8.0), places=1)
    purse.first("a", usd(5.0))
    for heard, run in ((0, "one"), (1, "one"), (2, "two")):
        purse.ask(Ask(job="a", wanted=usd(0.1), waits=False, run=run, heard=heard))
        assert purse.settle() == {"a": Granted(slice=usd(2.0))}
    purse.ask(Ask(job="a", wanted=usd(0.1), waits=True, run="two", heard=2))
    assert purse.settle() == {}


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


def test_nobody_is_answered_twice_for_one_want() -> None:
    """Who asks for more before it has heard an answer hears that first, and then asks again."""
    purse = Purse(usd(1.0), places=1)
    purse.first("a", usd(5.0))
    purse.ask(Ask(job="a", wanted=usd(0.2), waits=False, run="r"))
    assert purse.settle() == {"a": Granted(slice=usd(0.25))}
    purse.ask(Ask(job="a", wanted=usd(0.7), waits=True, run="r"))
    purse = Purse.restored(SavedPurse.model_validate_json(purse.saved().model_dump_json()))
    assert (purse.settle(), purse.free) == ({}, usd(0.5))
    for run, heard in (("r", 1), ("of a reset", 0)):
        purse.ask(Ask(job="a", wanted=usd(0.25), waits=True, run=run, heard=heard))
        assert purse.settle() == {"a": Granted(slice=usd(0.25))}


def test_a_wish_is_answered_once_also_in_the_next_run() -> None:
    """A job that goes on in another run before it has heard the answer utters its wish again."""
    purse = Purse(usd(1.0), places=1)
    purse.first("a", usd(5.0))
    purse.ask(Ask(job="a", wanted=usd(0.2), waits=False, run="one", id="first"))
    assert purse.settle() == {"a": Granted(slice=usd(0.25), ask="first")}
    purse = Purse.restored(SavedPurse.model_validate_json(purse.saved().model_dump_json()))
    purse.ask(Ask(job="a", wanted=usd(0.2), waits=True, run="two", id="first"))
    assert (purse.settle(), purse.free) == ({}, usd(0.5))
    purse.ask(Ask(job="a", wanted=usd(0.2), waits=True, run="two", heard=1, id="second"))
    assert purse.settle() == {"a": Granted(slice=usd(0.25), ask="second")}


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


@pytest.mark.parametrize(
    ("used", "usd", "told", "before"),
    [
        (0.00017, 0.00042, "$0.00017 of $0.00042", "$0.00 of $0.00"),
        (0.0, 0.5, "$0.00 of $0.50", "$0.00 of $0.50"),
        (0.00017, 1.0, "$0.00 of $1.00", "$0.00 of $1.00"),
        (1.2345, 5.0, "$1.23 of $5.00", "$1.23 of $5.00"),
    ],
)
def test_a_small_budget_is_told_as_it_is(used: float, usd: float, told: str, before: str) -> None:
    """A model that sees nothing of nothing cannot know what is left; jobs that a build of before
    began are told as they were.
    """
    spending = Spending(
        turn=1, turns=9, tokens_used=0, tokens=1_000, usd_used=used, usd=usd, wall_left=60.0
    )
    assert f"; {told}; " in spending.line()
    assert f"; {before}; " in spending.line(cents=False)
