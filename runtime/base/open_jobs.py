"""How many jobs a worker has open at a time: the one setting for what it remembers of them."""

from __future__ import annotations

import os

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.whole_numbers import whole_number

OPEN_JOBS = "HOLDFAST_OPEN_JOBS"
_DEFAULT = 1000
_MOST = 1_000_000


def open_jobs() -> int:
    """So many workflows stay in memory, and of so many jobs what the next turn needs; a worker
    replays and reads the others anew.

    Raises:
        InputError: if ``HOLDFAST_OPEN_JOBS`` is no number from 1 to 1,000,000.
    """
    setting = os.environ.get(OPEN_JOBS, "")
    if not setting:
        return _DEFAULT
    number = whole_number(setting, _MOST)
    if not number:
        raise InputError(
            f"{OPEN_JOBS}: expected a number from 1 to {_MOST:,}, got {shown(setting)}"
        )
    return number
