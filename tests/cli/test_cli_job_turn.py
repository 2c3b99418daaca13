"""``JOB@N`` on the command line."""

import pytest

from runtime.base.errors import InputError
from runtime.cli.job_turn import JobTurn, parse_job_turn


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
