"""``holdfast run``: run the jobs of a jobs file, or resume them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.cli.options import Address, Namespace, Profile, Store
from runtime.cli.output import say

if TYPE_CHECKING:
    from runtime.cli.reporters import Reporter


def command(
    jobs_file: Annotated[
        Path, typer.Argument(metavar="JOBS_FILE", help="YAML, or JSONL with one job a line.", show_default=False)
    ],
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
    store: Store = None,
    rerun_failed: Annotated[
        bool, typer.Option("--rerun-failed", help="Start the jobs that failed anew; the others as usual.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, say what would happen, start nothing.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the jobs with all defaults filled in, start nothing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line; the last one is the summary.")
    ] = False,
) -> None:
    """Run the jobs of a jobs file. The same command again resumes them and repeats nothing that is finished.

    Exit code 0: all jobs succeeded; 1: some did not; 2: bad input; 3: a budget stopped some; 130: interrupted.
    """
    from runtime.spec.load import load_jobs_file

    batch = load_jobs_file(jobs_file)
    if store is not None:
        batch = batch.model_copy(update={"store": store})
    if print_config:
        from runtime.spec.dump import resolved_yaml

        say(resolved_yaml(batch).rstrip("\n"))
        return
    import asyncio

    from runtime.cli.running import dry_run as look
    from runtime.cli.running import run_batch
    from runtime.connection import Target

    target = Target(address=address, namespace=namespace, profile=profile)
    work = look if dry_run else run_batch
    raise typer.Exit(asyncio.run(work(batch, target, _reporter(json), rerun_failed=rerun_failed)))


def _reporter(json: bool) -> Reporter:
    from runtime.cli.reporters import JsonReporter, LiveReporter, PlainReporter

    if json:
        return JsonReporter()
    return LiveReporter() if sys.stdout.isatty() else PlainReporter()
