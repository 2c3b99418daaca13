"""``holdfast worker``: a worker alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runtime.base.collector import loading
from runtime.base.errors import InputError
from runtime.cli.options import ANY_SERVER, PROCESSES, Store
from runtime.server.target import Target


def command(
    target: Target = ANY_SERVER,
    store: Store = None,
    deployment: Annotated[
        str | None,
        typer.Option(
            "--deployment",
            metavar="NAME",
            help=(
                "Be a version of a Temporal worker deployment. Jobs stay on the version they began"
                " on until a checkpoint."
            ),
            show_default=False,
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(
            "--build",
            metavar="ID",
            help=(
                "With --deployment: that version's build id. Default: the versions of Holdfast and"
                " of its interpreter, with a digest of the source of workflow code."
            ),
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow",
            metavar="DIR",
            help=(
                "Take scripts, tools and workspaces from below DIR only; may be given several"
                " times. Default: from where the jobs say."
            ),
            show_default=False,
            exists=True,
            file_okay=False,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="IP:PORT",
            help=(
                "Serve metrics for Prometheus at http://IP:PORT/metrics. Default: HOLDFAST_METRICS,"
                " else nowhere."
            ),
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", metavar="BATCH", help="Work on this batch alone.", show_default=False
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar="NAME",
            help=(
                "Make the calls of tools with this queue, and do nothing else; may be given several"
                " times."
            ),
            show_default=False,
        ),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(
            "--roles",
            metavar="LIST",
            help=(
                "Do these parts of the work alone, with commas between: turns, models, tools,"
                " sandboxes, reads. Default: HOLDFAST_ROLES, else all of it."
            ),
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            min=0,
            max=256,
            metavar="N",
            help=(
                "Work in so many processes; the K-th serves metrics at the port plus K."
                " Default, and for 0: one for each core, or two for three beside the embedded"
                " server; and one alone where metrics are served."
            ),
            envvar=PROCESSES,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a worker alone, until Ctrl-C.

    Several processes are watched by this one: one that ends is started again, and all drain and end
    with it.

    It works on every open batch of the server whose archive is this worker's, and on jobs that were
    reset or forked; with --queue on the calls of such tools alone, for which it needs no provider's
    key. With --roles only a worker with models needs a provider's key, and only workers with tools
    or sandboxes run programs; batches must be started with HOLDFAST_ROLES then.

    Workspaces, tools and scripts are taken from this machine, at the same paths as on the one where
    'holdfast run' was given, and the provider's keys from this environment. On another machine than
    that, HOLDFAST_KEY must be the key that the jobs were started with: the line in the file 'key'
    of that state directory. Give --store or HOLDFAST_STORE if the batches do not have their archive
    in the state directory: a batch whose archive is another one is left alone, and this is told.
    """
    import asyncio

    from runtime.base.roles import own_roles, roles_in
    from runtime.cli.logs import log_in_lines
    from runtime.cli.telemetry import metrics_address
    from runtime.jobsfile.written.names import NAME_RULE, is_name
    from runtime.tools.marks import QUEUE_RULE, is_queue

    with loading():
        from runtime.cli.working import Workers, run_workers

    for name, value in (("--deployment", deployment), ("--build", build), ("--batch", batch)):
        if value is not None and not is_name(value):
            raise InputError(f"{name} {value!r}: expected a name ({NAME_RULE})")
    if build is not None and deployment is None:
        raise InputError("--build names a version of a deployment: it goes with --deployment")
    queues = tuple(dict.fromkeys(queue or ()))
    for name in queues:
        if not is_queue(name):
            raise InputError(f"--queue {name!r}: expected {QUEUE_RULE}")
    if queues and (deployment is not None or batch is not None or roles is not None):
        raise InputError("--queue is for the tools of all batches: it goes with no other choice")
    own = own_roles() if roles is None else roles_in(roles, "--roles")
    own = None if queues else own
    log_in_lines(metrics)
    where = metrics_address(metrics)
    wish = Workers(deployment, build, tuple(allow or ()), batch, where, queues, own)
    raise typer.Exit(asyncio.run(run_workers(target, store, wish, processes)))
