"""What all mappings of a jobs file have in common: strict types, no unknown keys, no nulls."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from runtime.jobsfile.written.wrong import wrong


def _as_the_loader_does(schema: dict[str, Any]) -> None:
    """Say in ``schema`` that a key is left out or has a value (``null`` is neither), and drop
    compound defaults.
    """
    for name, part in schema.get("properties", {}).items():
        default = part.get("default")
        if isinstance(default, dict) or (isinstance(default, list) and default):
            del part["default"]
        kinds = part.get("anyOf", [])
        if name not in NULLABLE and {"type": "null"} in kinds:
            rest = [kind for kind in kinds if kind != {"type": "null"}]
            del part["anyOf"], part["default"]
            part.update(rest[0] if len(rest) == 1 else {"anyOf": rest})


NULLABLE = frozenset({"result", "spawn"})
"""Keys for which ``null`` means something: no schema, where the defaults have one."""


def not_null(value: Any, info: ValidationInfo) -> Any:
    """``value``, which is refused where it is ``null`` and its key none of ``NULLABLE``."""
    # A key with nothing behind it is null to YAML, and more often forgotten than meant.
    if value is None and info.field_name not in NULLABLE:
        raise wrong("expected a value, got nothing; leave the key out instead")
    return value


class Written(BaseModel):
    """A mapping of a jobs file."""

    model_config = ConfigDict(
        # A number in quotes is a text, and 1 is not true: types are those of YAML and JSON.
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        frozen=True,
        json_schema_extra=_as_the_loader_does,
    )

    _no_nulls = field_validator("*", mode="before")(not_null)
