"""``holdfast worker``: a worker alone."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.options import Address, Namespace, Profile, Store


def command(
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
    store: Store = None,
    deployment: Annotated[
        str | None,
        typer.Option(
            "--deployment",
            metavar="NAME",
            help="Be this release's version of a Temporal worker deployment. Jobs stay on the version they began on until a checkpoint.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a worker alone, until Ctrl-C.

    It works on every open batch of the server whose archive is this worker's. Workspaces, tools and scripts are taken from
    this machine, at the same paths as where 'holdfast run' was given, and the provider's keys from this environment.
    Give --store or HOLDFAST_STORE if the batches do not have their archive in the state directory: a batch whose archive is
    another one is left alone, and said so.
    """
    import asyncio

    from runtime.cli.logs import log_in_lines
    from runtime.cli.running import run_workers
    from runtime.connection import Target

    log_in_lines()
    target = Target(address=address, namespace=namespace, profile=profile)
    raise typer.Exit(asyncio.run(run_workers(target, store, deployment)))
