"""What the arguments of a native call say, which are what a model wrote: text that should be JSON.
Pure.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_DEPTH = 100
"""Values in one another. How deep Python reads and writes depends on what has called it, and others
stop sooner: what is deeper is left as the text that it is.
"""

MOST_LOADED_DEPTH = 800
"""Values in one another that ``load_arguments`` reads: Python 3.11 stops before 1,000, 3.14 after
tens of thousands, and what a job is told of its reply must not depend on that.
"""


def load_arguments(arguments: str, *, strict: bool = True) -> Any:
    """As ``json.loads``, and as deep on every Python; of what is no JSON each has its own words.

    Raises:
        ValueError: if they are no JSON, or a number in them has more digits than Python reads.
        RecursionError: if they are nested more than ``MOST_LOADED_DEPTH`` deep.
    """
    value = json.loads(arguments, strict=strict)
    if _is_deeper(value, MOST_LOADED_DEPTH):
        raise RecursionError
    return value


def read_arguments(arguments: str) -> Any:
    """The value that the arguments are as JSON; every reader of JSON takes it.

    Raises:
        ValueError: if they are none: also with numbers that JSON has not (``NaN``), that end in
            infinity, or that have more digits than Python reads, with half a character, and nested
            too deeply.
    """
    try:
        value = json.loads(arguments, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _is_deeper(value, MOST_DEPTH):
        raise ValueError("nested too deeply")
    if "\\ud" in arguments.lower():
        # Of half a surrogate pair, which JSON can spell, this raises.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _is_deeper(value: Any, most: int) -> bool:
    level, depth = [value], 0
    while depth <= most and (level := [one for outer in level for one in _within(outer)]):
        depth += 1
    return depth > most


def _within(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON's")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is more than a number can be")
    return number
