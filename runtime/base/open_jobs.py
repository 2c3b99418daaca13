"""How many jobs a worker has open at a time: the one setting for what it remembers of them."""

from __future__ import annotations

import os

from runtime.base.errors import InputError
from runtime.base.quoted import shown

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
    # By its length first: Python reads no number of thousands of digits.
    digits = setting.isdecimal() and setting.isascii() and len(setting) <= len(str(_MOST))
    if not digits or not 1 <= int(setting) <= _MOST:
        raise InputError(
            f"{OPEN_JOBS}: expected a number from 1 to {_MOST:,}, got {shown(setting)}"
        )
    return int(setting)
