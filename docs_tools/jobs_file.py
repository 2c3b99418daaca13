"""Every key of a jobs file, with its form, default and meaning, as Markdown, from the JSON Schema.

``python -m docs_tools.jobs_file`` prints it; ``--write`` puts it between the marks of
``docs/jobs-file.md``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.blocks import hand_over
from runtime.jobsfile.schema import written_schema

DOCUMENT = Path(__file__).parent.parent / "docs" / "jobs-file.md"
BLOCK = "keys"

PARTS = {
    "the file": "",
    "the file's `budget`": "WrittenBatchBudget",
    "`limits`": "WrittenLimits",
    "a limit of models": "WrittenLimit",
    "a limit of a tool": "WrittenToolLimit",
    "`on_finish`": "WrittenFinish",
    "a job": "WrittenJob",
    "`workspace`": "WrittenWorkspace",
    "`budget`": "WrittenBudget",
    "`retry`": "WrittenRetry",
    "`sections`": "WrittenSections",
    "`condenser`": "WrittenCondenser",
    "`mcp`": "WrittenServer",
    "`spawn`": "WrittenSpawn",
    "`approvals`": "WrittenApprovals",
    "`redact`": "WrittenRedaction",
    "a model": "WrittenModel",
    "`price`": "WrittenPrice",
}
"""The mappings of a jobs file, in the order of the page.

``mcp`` has such keys for each server, ``limits`` for each pattern and tool.
"""

SETTINGS = "WrittenSettings"
"""That of ``defaults``, which takes a job's keys but those that make a job."""


def keys() -> str:
    """A table for each mapping."""
    schema = written_schema()
    return "\n\n".join(
        _table(title, _mapping(schema, name), schema) for title, name in PARTS.items()
    )


def _mapping(schema: dict[str, Any], name: str) -> dict[str, Any]:
    definition = schema["$defs"][name] if name else schema
    return next((one for one in definition.get("anyOf", ()) if "properties" in one), definition)


def _table(title: str, mapping: dict[str, Any], schema: dict[str, Any]) -> str:
    required = set(mapping.get("required", ()))
    rows = [_row(key, part, key in required, schema) for key, part in mapping["properties"].items()]
    head = [
        f"### The keys of {title}",
        "",
        "| key | form | default | what it is |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def _row(key: str, part: dict[str, Any], required: bool, schema: dict[str, Any]) -> str:
    told = part.get("description") or _resolved(part, schema).get("description", "")
    default = (
        "required" if required else f"`{json.dumps(part['default'])}`" if "default" in part else ""
    )
    cells = [f"`{key}`", _form(part, schema), default, " ".join(told.split())]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    return dict(schema["$defs"][name]) if name else part


def _form(part: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in part:
        return _form(_resolved(part, schema), schema)
    if "anyOf" in part:
        forms = dict.fromkeys(_form(one, schema) for one in part["anyOf"])
        # With a default, null says no more than that the key may be left out.
        return " or ".join(form for form in forms if form != "null" or "default" not in part)
    if "enum" in part or "const" in part:
        return ", ".join(f"`{value}`" for value in part.get("enum", [part.get("const")]))
    kind = str(part.get("type", "any"))
    if kind == "array":
        return f"list of {_many(part, schema)}"
    if kind == "object" and "title" in part:
        return "mapping"
    names = {"string": "text", "object": "mapping"}
    return names.get(kind, kind) + _bounds(part)


def _many(part: dict[str, Any], schema: dict[str, Any]) -> str:
    low, high = part.get("minItems", 0), part.get("maxItems")
    many = f"{low:,} to {high:,} of" if low else f"at most {high:,} of"
    return f"{many}: {_form(part['items'], schema)}"


def _bounds(part: dict[str, Any]) -> str:
    length = " characters" if part.get("type") == "string" else ""
    bounds = {"at least": "minimum", "above": "exclusiveMinimum", "at most": "maximum"}
    if length:
        bounds = {"at least": "minLength", "at most": "maxLength"}
    told = [f"{word} {part[name]:,}" for word, name in bounds.items() if name in part]
    return f", {', '.join(told)}{length}" if told else ""


if __name__ == "__main__":
    hand_over(keys(), BLOCK, DOCUMENT if "--write" in sys.argv[1:] else None)
