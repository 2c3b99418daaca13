"""The JSON Schema of the jobs file says what the loader does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from runtime.base.errors import InputError
from runtime.jobsfile.schema import jobs_file_schema

SCHEMA = jobs_file_schema()
JOB = {"id": "a", "goal": "g", "workspace": "src", "model": "x"}


def accepts(value: Any) -> bool:
    """Whether the schema accepts ``value``."""
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(value)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object in ``schema``."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_it_is_a_schema() -> None:
    """It satisfies its own dialect, and names it."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_field_is_described() -> None:
    """An editor can explain each key, and knows that there are no others (a model's options are
    litellm's).
    """
    for part in objects(SCHEMA):
        assert all(field.get("description") for field in part["properties"].values())
        assert part["additionalProperties"] is ("name" in part["properties"])


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ({"jobs": [JOB]}, True),
        ({"batch": "b", "concurrency": 3, "store": "s3://b/p", "tools_path": ".", "jobs": [JOB]}, True),
        ({"defaults": {"model": {"name": "y", "temperature": 0}, "workspace": "src"}, "jobs": [{"id": "a", "goal": "g"}]}, True),
        ({"jobs": [{**JOB, "budget": {"turns": 1, "tokens": 2, "usd": 0.5, "wall": "1h30m"}}]}, True),
        ({"jobs": [{**JOB, "budget": {"wall": 60}}]}, True),
        ({"jobs": [{**JOB, "form": "auto", "context_tokens": 2000, "tools": ["mytools:search"]}]}, True),
        ({"jobs": [{**JOB, "result": {"type": "object"}}]}, True),
        ({"jobs": [{**JOB, "result": None}]}, True),
        ({"jobs": []}, False),
        ({}, False),
        ({"jobs": [JOB], "joobs": 1}, False),
        ({"jobs": [{**JOB, "goals": "g"}]}, False),
        ({"jobs": [{**JOB, "budget": {"turn": 1}}]}, False),
        ({"jobs": [{**JOB, "budget": {"turns": 0}}]}, False),
        ({"jobs": [{**JOB, "budget": {"wall": "soon"}}]}, False),
        ({"jobs": [{**JOB, "budget": None}]}, False),
        ({"jobs": [{**JOB, "model": None}]}, False),
        ({"jobs": [{**JOB, "model": {"api_base": "http://x"}}]}, False),
        ({"jobs": [{**JOB, "model": {"name": "x", "api_key": "k"}}]}, False),
        ({"jobs": [{**JOB, "model": {"name": "x", "messages": []}}]}, False),
        ({"jobs": [{**JOB, "id": "a b"}]}, False),
        ({"jobs": [{**JOB, "form": "other"}]}, False),
        ({"jobs": [{**JOB, "tools": ["search"]}]}, False),
        ({"defaults": {"goal": "g"}, "jobs": [JOB]}, False),
    ],
)  # fmt: skip
def test_it_agrees_with_the_loader(
    load: Callable[..., object], value: dict[str, Any], right: bool
) -> None:
    """What the schema accepts loads, what it rejects does not."""
    assert accepts(value) is right
    if right:
        load(json.dumps(value))
    else:
        with pytest.raises(InputError):
            load(json.dumps(value))


def test_a_line_of_jsonl_has_a_schema_too() -> None:
    """The definition ``WrittenJob`` is the schema of one line."""
    line = {"$ref": "#/$defs/WrittenJob", "$defs": SCHEMA["$defs"]}
    assert jsonschema.Draft202012Validator(line).is_valid(JOB)
    assert not jsonschema.Draft202012Validator(line).is_valid({**JOB, "x": 1})


def test_fields_may_stand_in_jobs_alone() -> None:
    """The page's own example of many jobs satisfies it; defaults, and what makes the jobs, have no
    fields.
    """
    page = (Path(__file__).parents[2] / "docs" / "jobs-file.md").read_text()
    example = page.partition("## Many jobs from one")[2].split("```")[1].removeprefix("yaml\n")
    many = YAML(typ="safe").load(example)
    assert accepts(many)
    for job in (
        {"condenser": "{c}", "form": "{f}", "pin_user_messages": "{p}", "tools": "{t}"},
        {"tools": ["m:{f}"], "retry": "{r}", "mcp": {"docs": {"timeout": "{t}"}}, "result": "{r}"},
    ):
        assert accepts({"jobs": [{**JOB, **job}]})
    for value in (
        {**many, "defaults": {"budget": {"turns": "{n}"}}},
        {**many, "concurrency": "{n}"},
        {"jobs": [{**JOB, "count": "{n}"}]},
        {"jobs": [{**JOB, "budget": {"turns": "n"}}]},
    ):
        assert not accepts(value)


def test_the_printed_configuration_satisfies_it(load: Callable[..., Any]) -> None:
    """What ``--print-config`` prints is a jobs file by the schema as well."""
    from runtime.jobsfile.dump import resolved_yaml

    batch = load(
        json.dumps({"jobs": [{**JOB, "tools": ["mytools:search"], "result": {"type": "object"}}]})
    )
    assert accepts(YAML(typ="safe").load(resolved_yaml(batch)))
