"""``JOB@N``: a job and one of its turns, as it is written on the command line; ``JOB@N.CALL``: one
of the calls that the turn's statement made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from runtime.base.errors import InputError
from runtime.base.quoted import shown

TURN = re.compile(r"\d{1,9}", re.ASCII)
"""The number of a turn."""
_CALL = re.compile(rf".*@{TURN.pattern}\.{TURN.pattern}", re.ASCII | re.DOTALL)


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
    if not job or (at and not TURN.fullmatch(turn)):
        raise InputError(
            f"{shown(text)} is no JOB@N: a job's name, '@' and the number of a turn, as in"
            " 'nightly/licences@12'"
        )
    return JobTurn(job, int(turn) if turn else None)


def parse_job_call(text: str) -> tuple[JobTurn, int | None]:
    """Reads ``JOB@N.CALL``, where ``CALL`` is the number that ``log --effects`` has; ``JOB@N`` and
    ``JOB`` name none.

    Raises:
        InputError: as ``parse_job_turn``.
    """
    turn, _, call = text.rpartition(".")
    if _CALL.fullmatch(text):
        return parse_job_turn(turn), int(call)
    return parse_job_turn(text), None
