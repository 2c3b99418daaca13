"""Pages of ``docs/`` that programs write from the code say what the code does now."""

from __future__ import annotations

import pytest

from benchmarks.blocks import block_of
from docs_tools import cli, jobs_file, json_shapes
from runtime.jobsfile.schema import written_schema


@pytest.mark.slow
def test_the_page_of_commands_is_what_they_say() -> None:
    """``docs/cli.md`` has what each command prints when it is asked for help; else ``python -m
    docs_tools.cli --write``.
    """
    assert block_of(cli.DOCUMENT.read_text(), cli.BLOCK) == cli.commands()


def test_the_page_of_the_jobs_file_has_every_key() -> None:
    """``docs/jobs-file.md`` has the schema's keys; else ``python -m docs_tools.jobs_file
    --write``.
    """
    assert block_of(jobs_file.DOCUMENT.read_text(), jobs_file.BLOCK) == jobs_file.keys()


def test_each_mapping_of_a_jobs_file_is_on_its_page() -> None:
    """With a table of its keys; those of ``defaults`` are a job's."""
    assert {*written_schema()["$defs"], ""} - {jobs_file.SETTINGS} == {*jobs_file.PARTS.values()}
    required = {"for_each", "matrix", "count", "id", "goal"}
    assert set(keys_of("WrittenJob")) - set(keys_of(jobs_file.SETTINGS)) == required


def keys_of(name: str) -> list[str]:
    """The keys of a mapping of the schema."""
    return list(written_schema()["$defs"][name]["properties"])


def test_the_page_of_json_has_the_pinned_shapes() -> None:
    """``docs/json.md`` has those of ``docs/json-shapes.json``; else ``python -m
    docs_tools.json_shapes --write``.
    """
    assert block_of(json_shapes.DOCUMENT.read_text(), json_shapes.BLOCK) == json_shapes.shapes()
