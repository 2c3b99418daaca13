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
    level, depth = [value], 0
    while level := [one for outer in level for one in _within(outer)]:
        depth += 1
        if depth > MOST_DEPTH:
            raise ValueError("nested too deeply")
    if "\\ud" in arguments.lower():
        # Of half a surrogate pair, which JSON can spell, this raises.
        json.dumps(value, ensure_ascii=False).encode()
    return value


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
