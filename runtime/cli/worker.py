"""``holdfast worker``: a worker alone."""

from __future__ import annotations

import typer

from runtime.cli.options import Address, Namespace, Profile, Store


def command(address: Address = None, namespace: Namespace = None, profile: Profile = None, store: Store = None) -> None:
    """Run a worker alone, until Ctrl-C.

    It executes the jobs that 'holdfast run' starts elsewhere on the same server.
    """
    import asyncio

    from runtime.cli.running import run_worker
    from runtime.connection import Target

    target = Target(address=address, namespace=namespace, profile=profile)
    raise typer.Exit(asyncio.run(run_worker(target, store)))
