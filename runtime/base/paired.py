"""Whether two things differ that were measured on the same cases: the paired t interval.

The quantile of Student's t is that of the finite series for whole degrees of freedom in Abramowitz
and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95

MOST = 1e100
"""A measurement of at most so much can be squared, and many of these summed up."""

_STEPS = 200
"""Of a bisection: more than a float has bits."""


@dataclass(frozen=True)
class Paired:
    """The means of two measurements of the same cases, and of the second minus the first.

    ``low`` and ``high`` bound the difference with a confidence of 95 %, and ``p`` is the chance of
    one as large where there is none; None for fewer than two pairs.
    """

    pairs: int
    means: tuple[float, float]
    difference: float
    low: float | None
    high: float | None
    p: float | None


def paired(first: Sequence[float], second: Sequence[float]) -> Paired | None:
    """The comparison of two measurements, case by case; None where there is no case."""
    count = len(first)
    if count == 0:
        return None
    differences = [b - a for a, b in zip(first, second, strict=True)]
    mean = math.fsum(differences) / count
    means = math.fsum(first) / count, math.fsum(second) / count
    if count == 1:
        return Paired(count, means, mean, None, None, None)
    squares = math.fsum((one - mean) ** 2 for one in differences)
    error = math.sqrt(squares / (count - 1) / count)
    around = error * quantile(CONFIDENCE, count - 1)
    # Where all differences are equal, either nothing differs or something surely does.
    p = (1.0 if mean == 0 else 0.0) if error == 0 else 1 - within(abs(mean) / error, count - 1)
    return Paired(count, means, mean, mean - around, mean + around, max(p, 0.0))


def within(t: float, freedom: int) -> float:
    """The chance that Student's t with so many degrees of freedom lies between ``-t`` and ``t``."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    if freedom == 1:
        return 2 * angle / math.pi
    term = cosine if odd else 1.0
    total = term
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def quantile(chance: float, freedom: int) -> float:
    """The bound within which Student's t lies with that chance."""
    low, high = 0.0, 1.0
    while within(high, freedom) < chance:
        high *= 2
    # Student's quantile has no closed form: the bounds are halved until they are one number.
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if within(middle, freedom) < chance:
            low = middle
        else:
            high = middle
    return high
