"""``JOB@N``: a job and one of its turns, as it is written on the command line."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.base.errors import InputError


@dataclass(frozen=True)
class JobTurn:
    """A job by the name that was given for it, and a turn of it; ``turn`` is None for the newest
    one.
    """

    job: str
    turn: int | None


def parse_job_turn(text: str) -> JobTurn:
    """Reads ``JOB@N`` or ``JOB``.

    An ``@`` within the job's name is part of it: the last one counts.

    Raises:
        InputError: if there is no job, or ``N`` is no whole number from 0.
    """
    job, at, turn = text.rpartition("@")
    if not at:
        job, turn = text, ""
    # ``isdigit`` alone takes digits that ``int`` refuses, such as superscripts.
    if not job or (at and not (turn.isascii() and turn.isdigit())):
        raise InputError(
            f"{text!r} is no JOB@N: a job's name, '@' and the number of a turn, as in"
            " 'nightly/licences@12'"
        )
    return JobTurn(job, int(turn) if turn else None)
