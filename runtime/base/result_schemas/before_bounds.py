"""How result schemas were checked before their checks were bounded, for the histories of then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry


def schema_fault(schema: dict[str, Any]) -> str | None:
    """What is wrong with a schema that a statement gives."""
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        return f"it is no JSON Schema: {error.message}"
    return None


def result_problem(result: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a result; what the check stumbles over as well."""
    try:
        # It fetches no schema: none did that had one answer in all replays.
        validator = validator_for(schema)(schema, registry=Registry())
        worst = best_match(validator.iter_errors(result))
    except Exception as error:  # noqa: BLE001 the task failed for ever
        return f"result: it cannot be checked by the schema ({type(error).__name__})"
    if worst is None:
        return None
    return f"result{''.join(f'[{part!r}]' for part in worst.absolute_path)}: {worst.message}"
