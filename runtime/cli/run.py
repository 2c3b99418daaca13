"""``holdfast run``: run the jobs of a jobs file, or resume them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.collector import loading
from runtime.base.errors import InputError
from runtime.cli.logs import log_in_lines, own_terminal
from runtime.cli.options import ANY_SERVER, PROCESSES, Store, words_of
from runtime.cli.output import note, say, stdout
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.cli.reporters import Reporter
    from runtime.jobsfile.load import Loaded


def command(
    jobs_file: Annotated[
        Path,
        typer.Argument(
            metavar="JOBS_FILE", help="YAML, or JSONL with one job a line.", show_default=False
        ),
    ],
    target: Target = ANY_SERVER,
    store: Store = None,
    rerun_failed: Annotated[
        bool,
        typer.Option(
            "--rerun-failed",
            help=(
                "Start the jobs anew that ended without success: failed, stopped by a budget, or"
                " cancelled. They may be defined otherwise now."
            ),
        ),
    ] = False,
    from_archive: Annotated[
        bool,
        typer.Option(
            "--from-archive",
            help=(
                "Go on with jobs that the archive has open and Temporal does not know, after the"
                " last turn that is archived."
            ),
        ),
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew", help="Run such jobs from their first turn again, and pay for it again."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=0,
            max=256,
            metavar="N",
            help=(
                "Work in so many processes; 0: in this one, whatever the jobs do. Default: one for"
                " each core, or two for three beside the embedded server, where there are jobs for"
                " them."
            ),
            envvar=PROCESSES,
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, say what would happen, start nothing."),
    ] = False,
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config", help="Print the jobs with all defaults filled in, start nothing."
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object a line; the last one is the summary."),
    ] = False,
) -> None:
    """Run the jobs of a jobs file.

    The same command again resumes them and repeats nothing that is finished.

    A job that was started must be defined as it was; jobs may be added, and the concurrency may
    change. Jobs that are no longer in the file are left alone. What tools and libraries print goes
    to stderr; where that is a terminal, to 'holdfast.log' in the state directory.

    The first Ctrl-C lets calls in flight end, the second stops at once; both leave the jobs
    resumable.

    A few jobs are worked on in this process. It starts others for a hundred jobs or more, for any
    with --workers above 1, and for jobs that run programs which could kill a worker: tools, MCP
    servers, checks, commands without a sandbox. The same holds where --address names a server;
    there a 'holdfast worker' elsewhere may help, or go on when this command is gone. Then both must
    reach the archive: name one that they do (in the jobs file, with --store or HOLDFAST_STORE),
    such as s3://BUCKET/PREFIX. Without, it is a directory of this machine.

    Exit code 0: all jobs succeeded; 1: some did not; 2: bad input; 3: a budget stopped some; 4: the
    archive was removed while they ran, or what came of a job cannot be read there; 130:
    interrupted.
    """
    with loading():
        from runtime.jobsfile.load import load

    if from_archive and anew:
        raise InputError("--from-archive and --anew: give one of them")
    if print_config and json:
        raise InputError("--print-config prints a jobs file: it does not go with --json")
    with own_terminal():
        loaded = load(jobs_file)
        batch = loaded.batch
        if store is not None:
            batch = batch.model_copy(update={"store": store})
        if print_config:
            from runtime.jobsfile.dump import resolved_yaml

            say(resolved_yaml(batch).rstrip("\n"))
            return
        import asyncio

        with loading():
            from runtime.cli.running import Lost, Request, run_batch
            from runtime.cli.running import dry_run as look
            from runtime.worker.settings import check_settings

        check_settings()
        log_in_lines()
        reporter = _reporter(json, draws=not dry_run)
        _check(loaded, batch.store, reporter)
        if dry_run and target.address is not None:
            note(
                "models were checked with this machine's keys and packages; workers elsewhere on"
                f" {target.address} need theirs"
            )
        # Without --rerun-failed, which would start anew what failed meanwhile.
        again = shlex.join(["holdfast", "run", str(jobs_file), *words_of(target, store)])
        lost = Lost.ANEW if anew else Lost.RESUMED if from_archive else Lost.REFUSED
        request = Request(batch, target, rerun_failed, again, lost, workers)
        work = look if dry_run else run_batch
        raise typer.Exit(asyncio.run(work(request, reporter)))


def _check(loaded: Loaded, store: str | None, reporter: Reporter) -> None:
    """See that the jobs can run, as far as that can be told here.

    Raises:
        InputError: if one cannot.
    """
    from runtime.cli.stores import address_of, named
    from runtime.client.preflight import check

    # Said before it is done: the library takes seconds to load.
    if any(job.model.script is None for job in loaded.batch.jobs):
        reporter.waiting("checking the models: loading the model library")
    try:
        notes = check(loaded, named(store), archive=lambda: address_of(store))
    finally:
        reporter.stop()
    for line in notes:
        note(line)


def _reporter(json: bool, *, draws: bool) -> Reporter:
    from runtime.cli.reporters import JsonReporter, PlainReporter

    if json:
        return JsonReporter()
    if not draws or not stdout().isatty() or os.environ.get("TERM") == "dumb":
        return PlainReporter()
    from runtime.cli.live import LiveReporter

    return LiveReporter()
