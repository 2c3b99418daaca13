"""``holdfast schema``: the JSON Schemas of jobs files and of archived objects."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.output import json_document


def command(
    archive: Annotated[
        bool,
        typer.Option(
            "--archive", help="Of each kind of archived object's header instead, by kind."
        ),
    ] = False,
) -> None:
    """Print the JSON Schema of a jobs file."""
    if archive:
        from runtime.archive.forms import json_schemas

        json_document(json_schemas())
        return
    from runtime.jobsfile.schema import jobs_file_schema

    json_document(jobs_file_schema())
