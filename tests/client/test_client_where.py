"""Which jobs an expression means, and what is told of one that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.errors import InputError
from runtime.client.where import MOST_DEPTH, where

ROWS = [
    {"batch": "b", "id": "a", "status": "failed", "reason": "turn 3: ServerError: Oops"}
    | {"turns": 3, "tokens": 900, "cost_usd": 1.5},
    {"batch": "b", "id": "c", "status": "running", "reason": ""}
    | {"turns": 40, "tokens": 90_000, "cost_usd": 0.25},
    {"batch": "b", "id": "d", "status": "failed", "reason": "the model's key is wrong"}
    | {"turns": 0, "tokens": 0, "cost_usd": 0.0},
]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("status=failed", "ad"),
        ("status=failed and cost>1", "a"),
        ("status == running or turns<1", "cd"),
        ("not status=failed", "c"),
        ("not (status=failed and cost>1) and tokens>=0", "cd"),
        ("status!=failed or cost <= $0 and turns=0", "cd"),
        ("reason ~ ServerError", "a"),
        ('reason ~ "key is"', "d"),
        ("tokens>=90,000", "c"),
        ("job='a' or job=c", "ac"),
        ("batch=other", ""),
    ],
)
def test_an_expression_means_the_jobs_of_which_it_holds(text: str, ids: str) -> None:
    """``and`` binds closer than ``or``, ``not`` closer still."""
    test = where(text)
    assert "".join(str(row["id"]) for row in ROWS if test(row)) == ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a field (status, reason, job, batch, turns, tokens, cost) at the end of ''"),
        ("state=failed", "column 1: expected a field"),
        ("status", "expected an operator (=, !=, <, <=, >, >=, ~) at the end"),
        ("status failed", "column 8: expected an operator"),
        ("status<failed", "column 7: expected =, != or ~ (status is a text), got '<'"),
        ("cost!=nan", "column 7: expected a number, got 'nan'"),
        (
            "not status=faild",
            "column 12: expected a status (queued, running, waiting, paused, succeeded, failed,"
            " budget, cancelled, open, damaged), got 'faild'",
        ),
        ("status!='Failed'", "column 9: expected a status"),
        ("cost>much", "column 6: expected a number, got 'much'"),
        ("cost~1", "column 5: expected =, !=, <, <=, > or >= (cost is a number), got '~'"),
        ("cost>1 turns>2", "column 8: expected 'and', 'or' or the end, got 'turns'"),
        ("(cost>1", "expected ')' at the end"),
        ("cost>1)", "column 7: expected 'and', 'or' or the end, got ')'"),
        ("reason='x", 'column 8: "\'" is not understood'),
        ("(" * (MOST_DEPTH + 2) + "cost>1", "expected less that is nested"),
        ("__import__('os').system('x')", "column 1: expected a field"),
    ],
)
def test_what_is_none_is_an_error_that_says_where(text: str, words: str) -> None:
    """One error, with the column and what was expected."""
    with pytest.raises(InputError) as raised:
        where(text)
    assert str(raised.value).startswith("--where: ")
    assert words in str(raised.value)


@given(st.text(alphabet="cost>1 and(or)not'\"=<~!turns \n\t5$,.x", max_size=40))
def test_whatever_is_given_is_a_test_or_one_error(text: str) -> None:
    """And a test says yes or no of each job."""
    try:
        test = where(text)
    except InputError:
        return
    assert all(isinstance(test(row), bool) for row in ROWS)
