"""``holdfast schema``: the JSON Schema of a jobs file."""

from __future__ import annotations

from runtime.cli.output import json_document


def command() -> None:
    """Print the JSON Schema of a jobs file."""
    from runtime.spec.written import jobs_file_schema

    json_document(jobs_file_schema())
