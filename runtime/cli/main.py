"""``holdfast``: the console script.

Exit codes: 0 all well; 1 it failed; 2 bad input; 3 a budget stopped jobs; 4 verification or replay
found a difference; 130 interrupted; 141 nobody reads what it prints. An error is told on stderr, in
a line or several; ``HOLDFAST_DEBUG=1`` adds the traceback.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from runtime.base.characters import is_unicode
from runtime.base.collector import begin_process
from runtime.base.errors import HoldfastError, InputError, ObjectCorrupt, ObjectMissing, ReaderGone
from runtime.base.unused import leave_out
from runtime.cli import (
    approvals,
    approve,
    blame,
    cancel,
    codec,
    compare,
    condense,
    cost,
    diff,
    divergences,
    doctor,
    down,
    errors,
    export,
    fork,
    init,
    keys,
    limits,
    log,
    ls,
    nodes,
    pause,
    reject,
    replay,
    results,
    resume,
    retry,
    run,
    schema,
    send,
    show,
    status,
    up,
    verify,
    watch,
    why,
    worker,
)
from runtime.cli.archive import copy as archive_copy
from runtime.cli.archive import create as archive_create
from runtime.cli.archive import delete as archive_delete
from runtime.cli.archive import hold as archive_hold
from runtime.cli.archive import prune as archive_prune
from runtime.cli.archive import release as archive_release
from runtime.cli.command import Command
from runtime.cli.exit_codes import INTERRUPTED
from runtime.cli.logs import DEBUG, is_debugging, log_core
from runtime.cli.options import with_connection_options
from runtime.cli.output import note, own_descriptor
from runtime.cli.telemetry import end_traces
from runtime.cli.text import one_line
from runtime.cli.version import version
from runtime.cli.workspace import apply as workspace_apply
from runtime.cli.workspace import cat as workspace_cat
from runtime.cli.workspace import diff as workspace_diff
from runtime.cli.workspace import export as workspace_export
from runtime.cli.workspace import ls as workspace_ls
from runtime.cli.workspace import patch as workspace_patch
from runtime.server.leaving import before_connecting

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    *(
        run,
        worker,
        up,
        down,
        status,
        ls,
        watch,
        results,
        errors,
        log,
        show,
        diff,
        blame,
        why,
        nodes,
        cost,
    ),
    *(replay, fork, divergences, compare),
    *(export, verify, codec, send, condense, pause, resume, cancel, retry, limits, schema),
    *(approvals, approve, reject),
    *(init, doctor, keys),
)
for _module in _COMMANDS:
    app.command(_module.__name__.rpartition(".")[2], cls=Command)(
        with_connection_options(_module.command)
    )

_workspace = typer.Typer(
    help="The files of jobs that change their workspace.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for _module in (
    *(workspace_ls, workspace_cat, workspace_diff, workspace_export),
    *(workspace_patch, workspace_apply),
):
    _workspace.command(_module.__name__.rpartition(".")[2], cls=Command)(_module.command)
app.add_typer(_workspace, name="workspace")

_archive = typer.Typer(
    help="Copy, hold, prune and delete archived jobs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for _module in (
    *(archive_create, archive_copy, archive_prune),
    *(archive_delete, archive_hold, archive_release),
):
    _archive.command(_module.__name__.rpartition(".")[2], cls=Command)(
        with_connection_options(_module.command)
    )
app.add_typer(_archive, name="archive")


def _print_version(context: typer.Context, asked: bool) -> None:
    if not asked:
        return
    if context.params.get("json"):
        from activities.build import this_build
        from runtime.cli.output import JSON_VERSION, json_document

        json_document({**this_build().model_dump(mode="json"), "json": JSON_VERSION})
    else:
        typer.echo(f"holdfast {version()}")
    raise typer.Exit


@app.callback()
def _root(
    asked: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version),
    ] = False,
    json: Annotated[
        bool,
        # Eager: ``--version`` must know of it, whichever stands first.
        typer.Option("--json", help="With --version: as JSON, with the build's id.", is_eager=True),
    ] = False,
) -> None:
    """Run unattended LLM agent jobs durably: exact resume, exact audit, exact replay."""


def main(arguments: Sequence[str]) -> int:
    """Runs one command; returns the exit code. Errors are reported, never raised."""
    try:
        typer.main.get_command(_with(arguments))(list(arguments), prog_name="holdfast")
    except SystemExit as end:
        # ``sys.exit`` with a text means 1, and without anything 0.
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (ObjectCorrupt, ObjectMissing) as error:
        advice = (
            "" if "holdfast verify" in str(error) else ": 'holdfast verify' tells what is damaged"
        )
        _report(f"{error}{advice}")
        return error.exit_code
    except ReaderGone as error:
        return error.exit_code
    except HoldfastError as error:
        _report(str(error))
        return error.exit_code
    # The last resort: a user never sees a traceback unasked.
    except Exception as error:  # noqa: BLE001
        if _interrupted(error):
            return INTERRUPTED
        if (odd := _no_text(error, arguments)) is not None:
            _report(f"expected Unicode text, got {odd!r}")
            return InputError.exit_code
        what = one_line(f"unexpected {type(error).__name__}: {error}")
        _report(f"{what} ({DEBUG}=1 shows the traceback)")
        return 1
    return 0


def _interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt is behind an error: Python 3.11 makes a ``RuntimeError`` of one that
    comes while a class is made.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _no_text(error: Exception, arguments: Sequence[str]) -> str | None:
    """What of a command is no UTF-8, where that is what the ``error`` is about: a path may be any
    bytes, but what becomes a part of a job, or is looked for in an archive, is text.
    """
    if "surrogates not allowed" not in str(error):
        return None
    settings = (os.environ.get(name, "") for name in ("PWD", "HOLDFAST_HOME", "HOLDFAST_STORE"))
    return next((one for one in (*arguments, *settings) if not is_unicode(one)), None)


def _with(arguments: Sequence[str]) -> typer.Typer:
    """The program with the one command, or group of commands, that is named, if there is it.

    Typer makes all that it is given, which takes longer than some commands.
    """
    name = next(iter(arguments), "")
    alone = copy.copy(app)
    alone.registered_commands = [one for one in app.registered_commands if one.name == name]
    alone.registered_groups = [one for one in app.registered_groups if one.name == name]
    return alone if alone.registered_commands or alone.registered_groups else app


def entry() -> NoReturn:
    """The console script: runs the command of ``sys.argv`` and ends the process with its exit
    code.
    """
    # A command that reads an archive makes objects by the hundred thousand, none of them garbage:
    # by Python's default a tenth of its time goes into looking for some.
    begin_process()
    leave_out()
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever a model wrote can be printed, also where the terminal's encoding has no such
            # character.
            stream.reconfigure(errors="backslashreplace")
    own_descriptor()
    before_connecting(log_core)
    code = main(sys.argv[1:])
    # ``os._exit`` below runs nothing of what is to run at the end.
    end_traces()
    for stream in (sys.stdout, sys.stderr):
        # What could not be written was told of.
        with contextlib.suppress(OSError, HoldfastError):
            stream.flush()
    # Now and then temporalio's runtime crashes the interpreter while it exits, after all work is
    # done (docs/facts.md).
    os._exit(code)


def _open_what_is_closed() -> None:
    """Lead standard streams that the process began without (``holdfast ls >&-``) nowhere.

    Else the next file or socket that is opened would get their number, and what is printed would go
    into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            # Python opens files for this process alone: those that it starts need their streams,
            # too.
            os.set_inheritable(number, True)
            setattr(
                sys,
                name,
                os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False),
            )


def _report(message: str) -> None:
    if is_debugging():
        note(traceback.format_exc())
    note(f"error: {message}")


if __name__ == "__main__":
    entry()
