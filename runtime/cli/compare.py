"""``holdfast compare``: where two timelines part, and how each ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.plurals import counted
from runtime.cli.completion import job_names
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, say
from runtime.cli.text import one_line

if TYPE_CHECKING:
    from runtime.archive.forms import End
    from runtime.archive.job import JobArchive
    from runtime.archive.stores import ObjectStore
    from runtime.archive.timelines import Turn


def command(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB1|BATCH1",
            help="A job, or a batch.",
            show_default=False,
            autocompletion=job_names,
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB2|BATCH2]",
            help="Another; without it, the run of JOB1 that --other-run names.",
            show_default=False,
            autocompletion=job_names,
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The run of JOB1; its newest by default.")
    ] = None,
    other_run: Annotated[
        str | None, typer.Option("--other-run", help="The run of JOB2; its newest by default.")
    ] = None,
    unscored: Annotated[
        float | None,
        typer.Option(
            "--unscored",
            metavar="SCORE",
            help="The score of jobs without one, of batches. By default these pairs are left out.",
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show where two timelines part, or how two batches differ.

    Of two timelines it shows the turns that they share, the first statement that differs, the first
    whose outcome differs, and how each ended. Of two batches: the jobs of the same ids, in pairs;
    the means of score, success, cost, tokens, turns and seconds, and their difference with its 95 %
    interval (Student's paired t). It reads the archive alone.
    """
    from runtime.archive.timelines import parting
    from runtime.base.errors import InputError, NotFound
    from runtime.base.paired import MOST
    from runtime.cli.stores import archive_to_read

    if other is None and other_run is None:
        raise InputError(
            f"{job!r} alone cannot be compared: name another job, another batch where it is one, or"
            " another run of the job with --other-run"
        )
    if unscored is not None and not abs(unscored) <= MOST:
        raise InputError(f"--unscored: expected a number from {-MOST:g} to {MOST:g}")
    if other == "":
        raise InputError("'' names no job and no batch: name another, or leave it out")
    objects = archive_to_read(store)
    if other is not None and run is None and other_run is None:
        from runtime.cli.compare_batches import compare_batches, is_batch

        if is_batch(objects, job) and is_batch(objects, other):
            compare_batches(objects, job, other, unscored=unscored, json=json)
            return
    if unscored is not None:
        raise InputError("--unscored is of two batches")
    try:
        first, second = _side(objects, job, run), _side(objects, other or job, other_run)
    except (InputError, NotFound) as error:
        if other is not None and (one := _only_batch(objects, job, other)) is not None:
            raise NotFound(one) from error
        raise
    parted = parting(first.turns, second.turns)
    if json:
        json_document(
            {
                "shared_turns": parted.shared,
                "first_other_statement": parted.statement,
                "first_other_execution": parted.execution,
                "sides": [first.document(), second.document()],
            }
        )
        return
    say(f"{first.address}  {second.address}")
    say(f"the same steps up to turn {parted.shared}" if parted.shared else "no step in common")
    say(_where("statement", parted.statement, [first, second]))
    say(_where("outcome", parted.execution, [first, second]))
    for side in (first, second):
        say(side.line())
    if first.end is not None and second.end is not None:
        say(f"results: {'the same' if first.end.result == second.end.result else 'different'}")


def _only_batch(objects: ObjectStore, job: str, other: str) -> str | None:
    """That one of the two is a batch and the other one none; None if that is not so."""
    from runtime.cli.compare_batches import is_batch

    batches = [name for name in (job, other) if is_batch(objects, name)]
    if len(batches) != 1:
        return None
    alone = other if batches == [job] else job
    return (
        f"{batches[0]!r} is a batch, and {alone!r} is none: 'holdfast ls' lists the jobs of all;"
        " name two batches, or two jobs as BATCH/ID"
    )


class _Side:
    """One of the two timelines."""

    def __init__(self, archive: JobArchive, name: str, run: str) -> None:
        from runtime.archive.timelines import timeline_of

        self.archive, self.name, self.run = archive, name, run
        turns, end = timeline_of(archive, run)
        self.turns: dict[int, Turn] = turns
        self.end: End | None = end

    @property
    def address(self) -> str:
        return f"{self.name} run {self.run}"

    def statement(self, turn: int) -> str:
        from runtime.cli.turns import form_of, statement_of

        source, problem = statement_of(form_of(self.archive), self.turns[turn].step)
        return one_line(source or problem or "(a message)")[:160]

    def outcome(self, turn: int) -> str:
        execution = self.turns[turn].execution
        if execution is None:
            return "not recorded"
        exception = execution.get("exception")
        digest = str(execution.get("namespace_digest", ""))[:19]
        return f"{execution.get('status')}" + (
            f" {exception['type']}" if exception else f", variables {digest}"
        )

    def document(self) -> dict[str, Any]:
        return {
            "job": self.name,
            "run": self.run,
            "turns": max(self.turns, default=0),
            "status": self.end.status if self.end else None,
            "reason": self.end.reason if self.end else "",
            "result": self.end.result if self.end else None,
            "tokens": self.end.usage.total if self.end else None,
            "cost_usd": self.end.cost_usd if self.end else None,
        }

    def line(self) -> str:
        turns = counted(max(self.turns, default=0), "turn")
        if self.end is None:
            return f"{self.name}: open, {turns}"
        reason = f": {one_line(self.end.reason)}" if self.end.status != "succeeded" else ""
        return (
            f"{self.name}: {self.end.status} after {turns}, {self.end.usage.total:,} tokens, "
            f"${self.end.cost_usd:.4f}{reason}"
        )


def _side(objects: ObjectStore, job: str, run: str | None) -> _Side:
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import chosen_run

    name = job_to_read(objects, job)
    archive = JobArchive.of(objects, name)
    return _Side(archive, str(name), chosen_run(archive, str(name), run))


def _where(what: str, turn: int | None, sides: list[_Side]) -> str:
    from runtime.archive.timelines import differing

    if turn is None:
        return f"no other {what} as far as both go"
    told = [side.statement(turn) if what == "statement" else side.outcome(turn) for side in sides]
    if told[0] == told[1] and what == "outcome":
        fields = differing(*(side.turns[turn] for side in sides))
        return f"first other {what}: turn {turn}, in {', '.join(fields)}\n  both {told[0]}"
    return f"first other {what}: turn {turn}\n  {told[0]}\n  {told[1]}"
