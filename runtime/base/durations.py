"""Durations as people write them: ``6h``, ``90m``, ``1h30m``, ``2d``, ``30s``, or a number of
seconds.
"""

from __future__ import annotations

import re

UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST = 3_650 * UNITS["d"]
PATTERN = r"^([0-9]+(\.[0-9]+)?[dhms])+$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([dhms])")


def parse_duration(value: object) -> float:
    """Seconds of ``value``, a number of seconds or a text such as ``1h30m``.

    Raises:
        ValueError: when it is neither, not above zero, or longer than ten years.
    """
    # True is an int to Python, and no duration.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a duration")
    if not isinstance(value, str):
        # Bounded before it is a float: a huge int is none.
        seconds = float(value) if abs(value) <= LONGEST else -1.0
    elif len(value) <= 64 and re.fullmatch(PATTERN, value):
        seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(value))
    else:
        raise ValueError("not a duration")
    if not 0 < seconds <= LONGEST:
        raise ValueError("out of range")
    return seconds


def format_deadline(deadline: float | str) -> str | float:
    """A deadline as a jobs file has it: a duration after the job's start, or the time that it
    is.
    """
    return deadline if isinstance(deadline, str) else format_duration(deadline)


def format_duration(seconds: float) -> str | float:
    """The shortest exact spelling of ``seconds``: ``6h`` for 21600; the plain number for fractions
    of a second.
    """
    if seconds != int(seconds):
        return seconds
    rest, text = int(seconds), ""
    for unit, size in UNITS.items():
        if rest >= size:
            text += f"{rest // size}{unit}"
            rest %= size
    return text or "0s"
