"""Whether a job's ``result`` is a JSON Schema that ``finish`` can check values against, without a
network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

from runtime.jobsfile.problems import key_path, shown

MAX_SCHEMA_BYTES = 64 * 1024
_DATA_KEYWORDS = frozenset({"const", "enum", "default", "examples"})


def schema_fault(schema: dict[str, Any]) -> str | None:
    """What is wrong with ``schema``, or None.

    Its ``$schema`` gives the draft, 2020-12 without one.
    """
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except ValueError:
        return "expected a JSON Schema, got a number that is not finite"
    if size > MAX_SCHEMA_BYTES:
        return f"expected a JSON Schema of at most {MAX_SCHEMA_BYTES} bytes, got {size}"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        at = key_path(tuple(error.absolute_path))
        # The message repeats the value, however long it is.
        value = f", got {shown(error.instance)}" if len(str(error.instance)) > 200 else ""
        text = error.message if not value else f"does not satisfy {shown(error.validator)}{value}"
        return f"expected a JSON Schema: {f'{at}: ' if at else ''}{text}"
    return _reference_fault(schema)


def _reference_fault(schema: dict[str, Any]) -> str | None:
    """The first ``$ref`` that leads nowhere in the schema itself."""
    try:
        specification = specification_with(str(schema["$schema"]))
    except (KeyError, UnknownDialect):
        specification = DRAFT202012
    # A schema may refer to itself by its own address.
    root = str(schema.get("$id", ""))
    # It knows this one schema and fetches none.
    registry: Registry[Any] = Registry().with_resource(root, specification.create_resource(schema))
    resolver = registry.resolver(root)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except (Unresolvable, ValueError, TypeError):
            return (
                f"expected a JSON Schema: $ref {shown(reference)} leads to nothing in the schema"
                " itself"
            )
    return None


def _references(value: Any) -> Iterator[str]:
    """The targets of all ``$ref`` in ``value``, but for those in plain data."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            elif key not in _DATA_KEYWORDS:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
