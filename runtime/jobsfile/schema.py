"""The JSON Schema of a jobs file, for editors: what the models say, and that a field (``{turns}``)
may stand for any value of a job.
"""

from __future__ import annotations

from typing import Any

from runtime.jobsfile.templates import TEXTS
from runtime.jobsfile.written.file import WrittenFile
from runtime.jobsfile.written.job import WrittenMany
from runtime.jobsfile.written.patterns import TEMPLATE_PATTERN

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_JOB = "WrittenJob"
_FIELD = "Field"
_OF_JOB = "OfJob"
"""How the definitions are called that only jobs have, beside those of ``defaults``."""

_ABOUT = ("title", "description", "default")


def jobs_file_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a YAML jobs file; a line of a JSONL file is its
    ``$defs/WrittenJob``.
    """
    schema = written_schema()
    plain = schema["$defs"]
    job = plain[_JOB]
    # What makes the jobs is no part of them, and texts may hold fields as they are.
    fixed = WrittenMany.model_fields.keys() | TEXTS
    properties = {
        key: part if key in fixed else _or_field(part) for key, part in job["properties"].items()
    }
    of_jobs = {f"{name}{_OF_JOB}": _within(part) for name, part in plain.items() if name != _JOB}
    field = {
        "description": "A text with a {field} of the item, the matrix or the count.",
        "type": "string",
        "pattern": TEMPLATE_PATTERN,
    }
    used = _reached(properties, of_jobs)
    schema["$defs"] = {
        **plain,
        _JOB: {**job, "properties": properties},
        **{name: part for name, part in of_jobs.items() if name in used},
        _FIELD: field,
    }
    return schema


def written_schema() -> dict[str, Any]:
    """The same schema without fields: the forms of values that a job has in the end."""
    return {"$schema": SCHEMA_DIALECT, **WrittenFile.model_json_schema()}


def _or_field(part: dict[str, Any]) -> dict[str, Any]:
    """``part``, or a field in its place."""
    about = {key: part[key] for key in _ABOUT if key in part}
    form = {key: value for key, value in part.items() if key not in _ABOUT}
    forms = form["anyOf"] if form.keys() == {"anyOf"} else [form]
    if any(_is_any_text(one) for one in forms):
        return _within(part)
    return {**about, "anyOf": [*map(_within, forms), {"$ref": f"#/$defs/{_FIELD}"}]}


def _is_any_text(part: dict[str, Any]) -> bool:
    return not part or (part.get("type") == "string" and not {"pattern", "enum"} & part.keys())


def _within(part: dict[str, Any]) -> dict[str, Any]:
    """``part`` with fields allowed in what it holds."""
    made = dict(part)
    if "$ref" in part:
        made["$ref"] += _OF_JOB
    if "anyOf" in part:
        made["anyOf"] = [_within(one) for one in part["anyOf"]]
    for several in ("properties", "patternProperties"):
        if several in part:
            made[several] = {key: _or_field(one) for key, one in part[several].items()}
    for one in ("additionalProperties", "items"):
        if isinstance(part.get(one), dict):
            made[one] = _or_field(part[one])
    return made


def _reached(part: Any, definitions: dict[str, Any]) -> set[str]:
    """The definitions that ``part`` names, at any depth."""
    if isinstance(part, list):
        return set[str]().union(*(_reached(one, definitions) for one in part))
    if not isinstance(part, dict):
        return set()
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    own = {name} | _reached(definitions[name], definitions) if name in definitions else set()
    return own.union(*(_reached(one, definitions) for one in part.values()))
