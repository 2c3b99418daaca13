"""Whether a schema is one by which ``finish`` can check values: without a network, and in bounded
work. A jobs file and ``spawn`` take no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from runtime.base.errors import InputError
from runtime.base.quoted import key_path, shown
from runtime.base.result_schemas.bounded import TooDeep, TooMuchWork, first_error_of, worst_error
from runtime.base.result_schemas.matching import matcher
from runtime.base.result_schemas.reachable import Reachable, address_inside

MAX_SCHEMA_BYTES = 64 * 1024
MAX_ADDRESS = 200
MAX_PATTERN_SIZE = 1_000_000
"""Instructions of all patterns of a schema, which take half a second to build."""

_REFUSED = {
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
    "unevaluatedItems": "use items",
    "unevaluatedProperties": "use additionalProperties",
}
"""Keywords whose work cannot be bounded, with what to write instead."""


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``schema``, or None.

    Its ``$schema`` gives the draft, 2020-12 without one.
    """
    try:
        text = json.dumps(schema, allow_nan=False)
    except ValueError:
        return "expected a JSON Schema, got a number that is not finite"
    except RecursionError:
        return _TOO_DEEP
    if len(text) > MAX_SCHEMA_BYTES:
        return f"expected a JSON Schema of at most {MAX_SCHEMA_BYTES} bytes, got {len(text)}"
    return _fault(text)


def result_problem(result: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``result`` by ``schema``, or with that, in one line; None if nothing is.

    One problem, that which explains most: the model is to put it right in its next turn.
    """
    if (fault := schema_fault(schema)) is not None:
        return f"no result can be checked by this job's schema: {fault}"
    try:
        worst = worst_error(schema, result)
    except TooMuchWork:
        return "result: it is too much to be checked by the schema; make it smaller"
    except (TooDeep, RecursionError):
        return "result: it is nested too deep to be checked by the schema"
    except Exception as error:  # noqa: BLE001 whatever it is, the workflow goes on
        return f"result: it cannot be checked by the schema ({type(error).__name__}: {error})"
    if worst is None:
        return None
    return f"result{''.join(f'[{part!r}]' for part in worst.absolute_path)}: {worst.message}"


_TOO_DEEP = "expected a JSON Schema: it is nested too deep"


@lru_cache(maxsize=64)
def _fault(text: str) -> str | None:
    schema = json.loads(text)
    try:
        return _draft_fault(schema) or _address_fault(schema) or _parts_fault(schema)
    except TooMuchWork:
        return "expected a JSON Schema: it is too large to be checked"
    except (TooDeep, RecursionError):
        return _TOO_DEEP
    except Exception as error:  # noqa: BLE001 such as a pattern that Python's parser falls over
        return f"expected a JSON Schema: {type(error).__name__}: {error}"


def _draft_fault(schema: dict[str, Any]) -> str | None:
    if (error := first_error_of(schema)) is None:
        return None
    at = key_path(tuple(error.absolute_path))
    # The message repeats the value, however long it is.
    value = f", got {shown(error.instance)}" if len(str(error.instance)) > 200 else ""
    told = error.message if not value else f"does not satisfy {shown(error.validator)}{value}"
    return f"expected a JSON Schema: {f'{at}: ' if at else ''}{told}"


def _address_fault(schema: dict[str, Any]) -> str | None:
    """Addresses that are joined for each value, in work that grows with them."""
    if (inside := address_inside(schema)) is not None:
        return f"expected a JSON Schema with no $id inside of it, got {shown(inside)}"
    if len(str(schema.get("$id", ""))) > MAX_ADDRESS:
        return f"expected a JSON Schema whose $id has at most {MAX_ADDRESS} characters"
    return None


def _parts_fault(schema: dict[str, Any]) -> str | None:
    """The first thing in it that ``finish`` could not check, or not in bounded work."""
    reachable = Reachable(schema)
    patterns = set[str]()
    try:
        for part in reachable.schemas():
            for keyword, instead in _REFUSED.items():
                if keyword in part:
                    return f"expected a JSON Schema without {keyword}: {instead}"
            if len(reference := str(part.get("$ref", ""))) > MAX_ADDRESS:
                return (
                    f"expected a JSON Schema whose $ref have at most {MAX_ADDRESS} characters, got"
                    f" {shown(reference)}"
                )
            if isinstance(pattern := part.get("pattern"), str):
                patterns.add(pattern)
            if isinstance(by_pattern := part.get("patternProperties"), dict):
                patterns.update(by_pattern)
        if (again := reachable.leads_in_a_circle()) is not None:
            reference = f" by $ref {shown(again['$ref'])}" if "$ref" in again else ""
            return (
                f"expected a JSON Schema: it leads back to itself{reference}, with no step into"
                " the value"
            )
    except LookupError as error:
        return (
            f"expected a JSON Schema: $ref {shown(error.args[0])} leads to nothing in the schema"
            " itself"
        )
    return _patterns_fault(patterns)


def _patterns_fault(patterns: set[str]) -> str | None:
    left = MAX_PATTERN_SIZE
    for pattern in sorted(patterns):
        try:
            left -= matcher(pattern).size
        except InputError as error:
            return f"expected a JSON Schema: {error}"
        if left < 0:
            return (
                "expected a JSON Schema: its patterns are too large; write [A-Za-z0-9_] for \\w,"
                " or smaller counts"
            )
    return None
