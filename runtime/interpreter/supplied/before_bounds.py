"""How the host computed functions before what they make was bounded, for the histories of then."""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Callable, Mapping
from typing import Any

from runtime.interpreter.supplied import pure


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function's value; only what it is given is bounded.

    Raises:
        pure.Refused: if that is too large.
        Exception: whatever the function raises.
    """
    pure.within_bounds(args, kwargs, usual_bits=math.inf)
    return _THEN.get(name, pure.function(name))(*args, **kwargs)


def _lines(function: Callable[..., Any]) -> Callable[..., list[str]]:
    def made(a: list[str], b: list[str], *args: Any) -> list[str]:
        pure.comparable(a, b)
        return list(function(a, b, *args))

    return made


_THEN: Mapping[str, Callable[..., Any]] = {
    "codecs.decode": lambda data, encoding, errors: data.decode(encoding, errors),
    "difflib.unified_diff": _lines(difflib.unified_diff),
    "difflib.context_diff": _lines(difflib.context_diff),
    "fnmatch.translate": fnmatch.translate,
    "pprint.pformat": lambda *args, **kwargs: pure.printing().pformat(*args, **kwargs),
}
