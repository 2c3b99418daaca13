"""``JOB@N`` on the command line."""

import pytest

from runtime.base.errors import InputError
from runtime.cli.job_turn import JobTurn, parse_job_call, parse_job_turn


@pytest.mark.parametrize(
    ("text", "job", "turn"),
    [
        ("nightly/licences@12", "nightly/licences", 12),
        ("last", "last", None),
        ("last@0", "last", 0),
        ("me@home/x@3", "me@home/x", 3),
    ],
)
def test_reads(text: str, job: str, turn: int | None) -> None:
    """The last '@' parts the job from the turn; without one the newest turn is meant."""
    assert parse_job_turn(text) == JobTurn(job, turn)


@pytest.mark.parametrize(
    "text", ["", "@", "@3", "job@", "job@-1", "job@1.5", "job@²", f"job@{'9' * 5_000}"]
)
def test_refuses(text: str) -> None:
    """Anything else is an input error that shows the form."""
    with pytest.raises(InputError, match="JOB@N"):
        parse_job_turn(text)


@pytest.mark.parametrize(
    ("text", "job", "turn", "call"),
    [
        ("nightly/licences@12.3", "nightly/licences", 12, 3),
        ("nightly/licences@12", "nightly/licences", 12, None),
        ("nightly/v1.2", "nightly/v1.2", None, None),
        ("me@1.5/x@3.0", "me@1.5/x", 3, 0),
    ],
)
def test_reads_a_call(text: str, job: str, turn: int | None, call: int | None) -> None:
    """Its number stands behind a turn's; a dot in a job's name is part of it."""
    assert parse_job_call(text) == (JobTurn(job, turn), call)


@pytest.mark.parametrize("text", ["job@1.", "job@.1", "job@1.2.3", "job@1.x", "@1.2"])
def test_refuses_what_is_no_call(text: str) -> None:
    """As it refuses what is no turn."""
    with pytest.raises(InputError, match="JOB@N"):
        parse_job_call(text)
