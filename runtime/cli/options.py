"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.completion import job_names

Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Temporal server. Default: TEMPORAL_ADDRESS, else the Temporal profile's, else the embedded server.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", help="The namespace on that server. Default: TEMPORAL_NAMESPACE.", show_default=False),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="The profile of Temporal's configuration file. Default: TEMPORAL_PROFILE.",
        show_default=False,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The archive: a directory or s3://BUCKET/PREFIX. Default: the jobs file's (for 'run'), else HOLDFAST_STORE, else the state directory's.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Job = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="BATCH/ID, any unique prefix of the id, or 'last'.",
        show_default=False,
        autocompletion=job_names,
    ),
]
