"""Pages of ``docs/`` that programs write from the code say what the code does now."""

from __future__ import annotations

import pytest

from benchmarks.blocks import block_of
from docs_tools import cli, jobs_file, json_shapes


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


def test_the_page_of_json_has_the_pinned_shapes() -> None:
    """``docs/json.md`` has those of ``docs/json-shapes.json``; else ``python -m
    docs_tools.json_shapes --write``.
    """
    assert block_of(json_shapes.DOCUMENT.read_text(), json_shapes.BLOCK) == json_shapes.shapes()
