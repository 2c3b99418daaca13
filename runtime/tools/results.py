"""Whether what a tool returned has the type that statements are told of: that of its stub, after it
has crossed as JSON.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

# True is an int, and an int will do for a float, in Python's eyes; pydantic's strict mode sees that
# otherwise.
_NAMES: dict[str, Any] = {
    "Any": Any,
    "Literal": Literal,
    "int": int | bool,
    "float": float | int | bool,
}


def wrong_result(name: str, declared: str, value: Any) -> str | None:
    """What is wrong with ``value``, plain JSON data, as the result of the tool ``name``; None if
    nothing is.

    ``declared`` is the type as ``stubs.result_text`` writes it. No part of the value is told: it
    may hold a secret.
    """
    # The text was made by ``result_text`` out of builtins' names, ``Any`` and ``Literal``s alone.
    adapter: TypeAdapter[Any] = TypeAdapter(eval(declared, dict(_NAMES)))
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError as error:
        at, place = value, ""
        for part in error.errors(include_url=False, include_context=False, include_input=False)[0][
            "loc"
        ]:
            # Members of a union have a part of their own, which is no place in the value.
            if isinstance(at, list) and isinstance(part, int):
                at, place = at[part], f"{place}[{part}]"
            elif isinstance(at, dict) and part in at:
                at, place = at[part], f"{place}[...]"
        where = f" with {_kind(at)} at {place}" if place else ""
        return f"{name}() is declared to return {declared}, but returned {_kind(value)}{where}"
    return None


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
