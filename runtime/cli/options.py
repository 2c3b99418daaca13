"""Options and arguments that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from runtime.cli.completion import batch_names, job_names
from runtime.server.target import Target

Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help=(
            "The Temporal server. Default: TEMPORAL_ADDRESS, else the Temporal profile's, else the"
            " embedded server."
        ),
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        help="The namespace on that server. Default: TEMPORAL_NAMESPACE.",
        show_default=False,
    ),
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
        help=(
            "The archive: a directory or s3://BUCKET/PREFIX. Default: the jobs file's (for 'run'),"
            " else HOLDFAST_STORE, else the state directory's."
        ),
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Batch = Annotated[
    str,
    typer.Argument(
        metavar="BATCH",
        help="The batch.",
        show_default=False,
        autocompletion=batch_names,
    ),
]
Job = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="BATCH/ID, any unique prefix of the id, or 'last'.",
        show_default=False,
        autocompletion=job_names,
    ),
]
Asking = Annotated[
    str,
    typer.Argument(
        metavar="JOB[@N[.CALL]]",
        help=(
            "BATCH/ID, any unique prefix of the id, or 'last'; with @N only a call of turn N, with"
            " @N.CALL only that call, as 'holdfast approvals' lists it. A job alone: whatever it"
            " waits with by now, which may be another call than was listed."
        ),
        show_default=False,
        autocompletion=job_names,
    ),
]

PROCESSES = "HOLDFAST_PROCESSES"
"""The variable that says in how many processes a worker works where no option does."""

ANY_SERVER = Target()
"""What a command's ``target`` is where no option names a server."""

_CONNECTION = {"address": Address, "namespace": Namespace, "profile": Profile}


def words_of(target: Target, store: str | None) -> list[str]:
    """The options that name the same server and the same archive to another command."""
    options = {
        "--address": target.address,
        "--namespace": target.namespace,
        "--profile": target.profile,
        "--store": store,
    }
    return [part for name, value in options.items() if value is not None for part in (name, value)]


def with_connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with ``--address``, ``--namespace`` and ``--profile`` in place of its parameter
    ``target``, if it has that.
    """
    told = inspect.signature(command, eval_str=True)
    if "target" not in told.parameters:
        return command
    parameters: list[inspect.Parameter] = []
    for parameter in told.parameters.values():
        spread = _CONNECTION if parameter.name == "target" else {}
        # By name alone: parameters with defaults may then stand before others without.
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in spread.items()
        ] or [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    def spread_out(**arguments: Any) -> None:
        target = Target(**{name: arguments.pop(name) for name in _CONNECTION})
        command(target=target, **arguments)

    spread_out.__doc__ = command.__doc__
    spread_out.__signature__ = told.replace(parameters=parameters)  # type: ignore[attr-defined]
    spread_out.__annotations__ = {}
    return spread_out
