"""``OutcomeUnknown`` in a statement: a name that is known where a tool runs at most once."""

from __future__ import annotations

import pytest
from plain_loop import Run

from holdfast import tool


@tool(effect="once")
def pay(kind: str) -> str:
    """A tool that runs at most once, of which a crash left no result."""
    raise {
        "unknown": type("OutcomeUnknown", (Exception,), {}),
        "broke": RuntimeError,
    }[kind]("it may have paid")


CAUGHT = """\
def why(kind):
    try:
        return pay(kind)
    except (KeyError, OutcomeUnknown) as error:
        return f"unknown: {error} {isinstance(error, OutcomeUnknown)}"
    except RuntimeError as error:
        return f"failed: {error}"
print(why('unknown'))
print(why('broke'))"""


def test_it_is_caught_by_its_name_and_is_no_runtime_error(run: Run) -> None:
    """Whoever makes calls again that failed does not make this one again by mistake."""
    loop = run(CAUGHT, tools=[pay])
    assert loop.executions[0].exception is None
    assert loop.executions[0].stdout == (
        "unknown: it may have paid True\nfailed: it may have paid\n"
    )


def test_uncaught_it_is_told_by_its_name(run: Run) -> None:
    """In the statement's exception and in its traceback; the record of the effect has it too."""
    first = run("x = 1\npay('unknown')", tools=[pay]).executions[0]
    assert first.exception is not None
    assert (first.exception.type, first.exception.message) == (
        "OutcomeUnknown",
        "it may have paid",
    )
    assert first.exception.trace_summary.endswith("\nOutcomeUnknown: it may have paid")
    assert [effect.error for effect in first.effects] == ["OutcomeUnknown"]


def test_it_cannot_be_bound(run: Run) -> None:
    """As other names of the contract: the statement is taken back."""
    exception = run("OutcomeUnknown = ValueError", tools=[pay]).executions[0].exception
    assert exception is not None
    assert "OutcomeUnknown" in exception.message


@pytest.mark.parametrize("source", ["OutcomeUnknown", "OutcomeUnknown = 1\nOutcomeUnknown + 1"])
def test_other_jobs_do_not_have_the_name(run: Run, source: str) -> None:
    """It is as any name that nobody has bound, and may be bound."""
    exception = run(source).executions[0].exception
    if "=" in source:
        assert exception is None
    else:
        assert exception is not None
        assert "OutcomeUnknown" in exception.message
