"""What ``replay`` and ``fork`` are told of the statements from N on, and the order that this
makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError

if TYPE_CHECKING:
    from activities.record import ReplayOrder, RunName
    from runtime.archive.job import JobArchive


class Mode(StrEnum):
    """Where statements come from."""

    RERUN = "rerun"
    REEXECUTE = "reexecute"


class Then(StrEnum):
    """What follows the end of the record."""

    STOP = "stop"
    CONTINUE = "continue"


ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="rerun: ask the model anew. reexecute: execute the recorded statements and compare.",
    ),
]
Frozen = Annotated[
    bool,
    typer.Option(
        "--frozen", help="With reexecute: answer reads, file calls and tools from the record too."
    ),
]
ThenOption = Annotated[
    Then,
    typer.Option(
        "--then", help="With reexecute: at the end of the record stop, or continue with the model."
    ),
]
Edit = Annotated[
    Path | None,
    typer.Option(
        "--edit",
        metavar="FILE",
        help="Execute this file's text in place of statement N; no model is called.",
    ),
]
Message = Annotated[
    str | None,
    typer.Option("--message", metavar="TEXT", help="A message that the model reads at N."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="The model from N on: a name, or a YAML mapping as in a jobs file.",
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="LIMITS",
        help="Limits from N on, of the whole job: turns=80,usd=2.5,wall=12h,deadline=24h.",
    ),
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach",
        help="Only start it, for a worker that runs elsewhere; do not work on it or wait.",
    ),
]


@dataclass(frozen=True)
class Wanted:
    """The options as given."""

    mode: Mode
    frozen: bool = False
    then: Then = Then.STOP
    edit: Path | None = None
    message: str | None = None
    model: str | None = None
    budget: str | None = None


def order_of(wanted: Wanted, archive: JobArchive, source: RunName, turn: int) -> ReplayOrder:
    """The order of a replay of ``source`` from statement ``turn`` on.

    Raises:
        InputError: if options do not go together, or one of them is wrong.
    """
    import uuid

    from activities.record import AfterRecord, ReplayMode, ReplayOrder
    from runtime.base.spec.models import Budget
    from runtime.client.masking import masked_message, masked_text
    from runtime.jobsfile.overrides import budget_override, model_override

    _check_together(wanted)
    base = Budget.model_validate((archive.definition() or {}).get("budget", {}))
    return ReplayOrder(
        id=uuid.uuid4().hex,
        start=turn,
        mode=ReplayMode(wanted.mode),
        source=source,
        frozen=wanted.frozen,
        then=AfterRecord(wanted.then),
        statement=(
            masked_text(archive, _statement(wanted.edit)) if wanted.edit is not None else None
        ),
        message=masked_message(archive, wanted.message) if wanted.message is not None else None,
        # On a command line paths begin where it is given, and not at the jobs file.
        model=model_override(wanted.model, Path.cwd()) if wanted.model is not None else None,
        budget=budget_override(wanted.budget, base) if wanted.budget is not None else None,
    )


def check_order(order: ReplayOrder, archive: JobArchive, *, detach: bool) -> None:
    """See that the model that ``order`` names can be called, before a run is ended or made for it;
    note a deadline that leaves it no time.

    With ``detach`` its key and its packages are those of workers elsewhere.

    Raises:
        InputError: if it cannot.
    """
    from activities.record import AfterRecord
    from runtime.base.spec.models import Budget, ModelSettings
    from runtime.cli.output import note
    from runtime.client import preflight

    # What a record answers no time ends.
    timeless = order.frozen and order.then is AfterRecord.STOP
    if order.budget is not None and not timeless and preflight.has_passed(order.budget):
        note(f"the deadline {order.budget.deadline} has passed: it ends the run as it begins")
    if order.model is None:
        return
    definition = archive.definition() or {}
    budget = order.budget or Budget.model_validate(definition.get("budget", {}))
    options = {key: value for key, value in order.model.items() if key != "name"}
    model = ModelSettings(name=order.model["name"], options=options)
    form = str(definition.get("form", "tool"))
    for line in preflight.check_model(model, form, budget, elsewhere=detach):
        note(line)


def _check_together(wanted: Wanted) -> None:
    if wanted.mode is Mode.RERUN:
        for name, asked in (
            ("--frozen", wanted.frozen),
            ("--then continue", wanted.then is Then.CONTINUE),
        ):
            if asked:
                raise InputError(f"{name} follows the record: it goes with --mode reexecute")
        return
    for name, text in (("--edit", wanted.edit), ("--message", wanted.message)):
        if text is not None:
            raise InputError(f"{name} leads away from the record: it goes with --mode rerun")
    if wanted.model is not None and wanted.then is Then.STOP:
        raise InputError(
            "--model: no model is called where only the record is executed; add --then continue"
        )


def _statement(path: Path) -> str:
    """The text of a statement's file, which must be one that the interpreter can parse."""
    from runtime.interpreter.checker import GaveUp
    from runtime.interpreter.pool import NoVerdict
    from runtime.interpreter.typecheck import check

    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"--edit {path}: it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--edit {path}: it is not UTF-8: {error.reason}") from error
    if not text.strip():
        raise InputError(f"--edit {path}: it is empty, and a statement is expected")
    try:
        objection = check(text, "", {}, frozenset()).refusal
    except (GaveUp, NoVerdict):
        # A busy machine is no reason to refuse it: whether it parses is told again when it runs.
        return text
    if objection is not None and objection.type == "SyntaxError":
        raise InputError(f"--edit {path}: {objection.message}")
    return text
