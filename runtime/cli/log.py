"""``holdfast log``: the turns of a job, one line for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError
from runtime.base.plurals import counted
from runtime.cli.chosen import Run
from runtime.cli.options import ANY_SERVER, Job, Json, Store
from runtime.cli.output import json_document, note, say, say_all
from runtime.cli.text import one_line, shortened
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.forms import Attempt, End, Failure, Step
    from runtime.archive.gaps import Gap, Readable
    from runtime.archive.job import JobArchive
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import Failed, JobKey
    from runtime.cli.under_way import UnderWay

REASON_CHARS = 100
"""Characters of the reason of an earlier run."""


def command(
    job: Job,
    run: Run = None,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph", help="Draw the job's runs instead: which went on from which, and where."
        ),
    ] = False,
    events: Annotated[
        bool,
        typer.Option(
            "--events", help="Also what happened to the context: calls of methods, changes, ticks."
        ),
    ] = False,
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Also what statements did: commands and how they ended, files that they changed,"
            " who approved a call.",
        ),
    ] = False,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show a job's model calls, one line for each.

    A turn's line has the statement's first line, its outcome, tokens, cost and time; before it
    stand the calls by which a model wrote summaries for its prompt, and what was forgotten. It
    reads the archive; where the server is in reach, it also says what an open job does now, or
    waits for.
    """
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import tell_newest
    from runtime.cli.stores import archive_to_read

    others = {"--run": run is not None, "--events": events, "--effects": effects}
    if graph and (more := [option for option, is_on in others.items() if is_on]):
        raise InputError(f"--graph draws all runs: it does not go with {' and '.join(more)}")
    objects = archive_to_read(store)
    name = job_to_read(objects, job)
    archive = JobArchive.of(objects, name)
    if graph:
        _graph(str(name), archive, json)
        return
    log = _read(archive, str(name), run, events=events, effects=effects)
    if run is None and log.run is not None:
        tell_newest(archive, str(name))
    # A run that is named may be an earlier one, which does nothing any more.
    now = _now(objects, name, target) if run is None and log.parts.end is None else None
    if json:
        json_document(_document(log, now))
    else:
        _tell(log, now)


@dataclass(frozen=True)
class Log:
    """What is told of a job: of one of its runs, None before its first turn, the parts that can be
    read and rows of what happened; ``events`` and ``effects`` are None where nobody asked for them.
    """

    name: str
    run: str | None
    parts: Readable
    parent: str
    earlier: list[dict[str, Any]]
    sub_jobs: list[str]
    turns: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    condensations: list[dict[str, Any]]
    events: list[dict[str, Any]] | None
    effects: list[dict[str, Any]] | None


def _read(archive: JobArchive, name: str, run: str | None, *, events: bool, effects: bool) -> Log:
    from runtime.archive.gaps import Readable, readable
    from runtime.cli.showing import chosen_run

    called = archive.runs_that_called()
    chosen = chosen_run(archive, name, run) if run is not None or called else None
    parts = readable(archive, chosen) if chosen else Readable(end=archive.end_without_calls())
    return Log(
        name=name,
        run=chosen,
        parts=parts,
        parent=_parent(archive, parts.gaps),
        earlier=earlier_of(archive) if run is None else [],
        sub_jobs=sub_jobs_of(parts),
        turns=turns_of(archive, chosen, parts) if chosen else [],
        summaries=summaries_of(archive, chosen, parts.gaps) if chosen else [],
        condensations=condensations_of(archive, parts),
        events=events_of(parts) if events else None,
        effects=(effects_of(archive, chosen, parts) if chosen else []) if effects else None,
    )


def _parent(archive: JobArchive, gaps: list[Gap]) -> str:
    """The job whose sub-job it is; empty where that cannot be read, which is a gap."""
    from runtime.archive.gaps import UNREADABLE, named_gap
    from runtime.archive.standings import parent_of

    try:
        return parent_of(archive)
    except UNREADABLE as error:
        gaps.append(named_gap(error))
        return ""


def _now(objects: ObjectStore, name: JobKey, target: Target) -> UnderWay | None:
    # Loaded here: of a job that has ended, no server is asked.
    from runtime.cli.under_way import under_way

    return under_way(objects, name, target)


def _document(log: Log, now: UnderWay | None) -> dict[str, Any]:
    end = log.parts.end
    return {
        "job": log.name,
        "run": log.run,
        "parent": log.parent or None,
        "earlier": log.earlier,
        "sub_jobs": log.sub_jobs,
        "turns": log.turns,
        "summaries": log.summaries,
        "condensations": log.condensations,
        **({} if log.events is None else {"events": log.events}),
        **({} if log.effects is None else {"effects": log.effects}),
        "damaged": [gap.document() for gap in log.parts.gaps],
        "now": now.document() if now else None,
        "end": end.document() if end else None,
    }


def _tell(log: Log, now: UnderWay | None) -> None:
    gaps, end = log.parts.gaps, log.parts.end
    whose = f"  sub-job of {log.parent}" if log.parent else ""
    say(f"{log.name}  run {log.run}{whose}" if log.run else f"{log.name}: no turn has begun{whose}")
    if log.earlier:
        say(f"earlier runs: {', '.join(map(_earlier_text, log.earlier))}; --run shows one")
    rows = (log.turns, log.summaries, log.condensations)
    say_all(lines_of(*rows, gaps, log.events or (), log.effects or ()))
    _tell_gaps(log.name, gaps)
    _tell_capture(log.turns)
    if log.sub_jobs:
        say(f"sub-jobs: {', '.join(log.sub_jobs)}")
    if now is not None:
        say(f"now: {now.status}: {one_line(now.reason)}")
    if end is not None:
        why = f": {one_line(end.reason)}" if end.reason and end.status != "succeeded" else ""
        late = f"; {counted(end.unread, 'message')} came too late to be read" if end.unread else ""
        say(f"end: {end.status}{why}{late}")


def _tell_gaps(name: str, gaps: Sequence[Gap]) -> None:
    if gaps:
        say(f"{counted(len(gaps), 'object')} cannot be read: run 'holdfast verify {name}'")


def earlier_of(archive: JobArchive) -> list[dict[str, Any]]:
    """How the job ended before it was begun anew, each time that it had begun a call, oldest first:
    its last run then, with status and reason; None where there is no end that can be read.
    """
    from runtime.archive.gaps import UNREADABLE
    from runtime.archive.standings import begun_anew

    begun, runs = set(begun_anew(archive)), archive.runs()
    rows: list[dict[str, Any]] = []
    for last, run in pairwise(runs):
        if run not in begun:
            continue
        end = None
        with suppress(*UNREADABLE):
            end = archive.end(last)
        status, reason = (end.status, end.reason) if end is not None else (None, "")
        rows.append({"run": last, "status": status, "reason": reason})
    return rows


def _earlier_text(row: dict[str, Any]) -> str:
    reason = f": {shortened(one_line(row['reason']), REASON_CHARS)}" if row["reason"] else ""
    return f"{row['run']} ({row['status'] or 'no end'}{reason})"


def sub_jobs_of(parts: Readable) -> list[str]:
    """The sub-jobs that the statements of a run started or found, as ``BATCH/JOB``, in order."""
    ends = [parts.end] if parts.end is not None else []
    effects = [
        effect
        for step_or_end in (*parts.steps, *ends)
        for effect in (step_or_end.execution or {}).get("effects", ())
    ]
    started = (one.get("path") for one in effects if one["kind"] == "spawn")
    return list(dict.fromkeys(str(name) for name in started if name))


def condensations_of(archive: JobArchive, parts: Readable) -> list[dict[str, Any]]:
    """What was forgotten in a run, in order: see ``condensation_row``."""
    from runtime.archive.forgetting import forgettings_in
    from runtime.cli.condensations import condensation_row

    return [condensation_row(told) for told in forgettings_in(archive, parts)]


def events_of(parts: Readable) -> list[dict[str, Any]]:
    """What happened to the context in a run, in order; ``step`` is the turn whose call came after,
    None at the end.
    """
    rows = [{"step": step.turn, **event} for step in parts.steps for event in step.events or ()]
    return rows + [
        {"step": None, **event}
        for event in (parts.end.events if parts.end is not None else None) or ()
    ]


def effects_of(archive: JobArchive, run: str, parts: Readable) -> list[dict[str, Any]]:
    """What the statements of a run did, in order."""
    from runtime.archive.told_effects import told_effects
    from runtime.cli.effects import effect_row

    after: list[tuple[int, Step | End]] = [(step.turn - 1, step) for step in parts.steps]
    if parts.end is not None:
        after.append((parts.end.turn, parts.end))
    return [
        effect_row(one)
        for turn, step_or_end in after
        for one in told_effects(archive, run, turn, step_or_end.execution, step_or_end.effects)
    ]


def _tell_capture(turns: list[dict[str, Any]]) -> None:
    """Say of calls that no wire was seen of, or that no model was asked in."""
    from collections import Counter

    captures = Counter(turn["capture"] for turn in turns if turn["capture"] != "wire")
    for capture, number in captures.items():
        note(f"not captured on the wire: {counted(number, 'turn')} ({capture})")


def gap_line(gap: Gap) -> str:
    """``   3  DAMAGED                 BATCH/JOB/turns/... is not there``."""
    turn = "" if gap.turn is None else gap.turn
    return f"{turn:4}  {'DAMAGED':<22}  {gap}"


def lines_of(
    turns: list[dict[str, Any]],
    summaries: list[dict[str, Any]],
    condensed: list[dict[str, Any]],
    gaps: Sequence[Gap] = (),
    events: Sequence[dict[str, Any]] = (),
    effects: Sequence[dict[str, Any]] = (),
) -> Iterator[str]:
    """The turns' lines, each behind those of the summaries and condensations that made its prompt,
    and before what its statement did; last those that made none.

    A turn that cannot be read has a line of its own that says so.
    """
    from runtime.cli.condensations import condensation_line
    from runtime.cli.effects import effect_line
    from runtime.job.happenings import line_of

    told = [(row["turn"], 0, summary_line(row)) for row in summaries]
    told += [(row["turn"], 1, f"      {condensation_line(row)}") for row in condensed]
    told += [(row["turn"], 2, turn_line(row)) for row in turns]
    # What belongs to no turn is told at the end.
    told += [(sys.maxsize if gap.turn is None else gap.turn, 2, gap_line(gap)) for gap in gaps]
    last = max((row["turn"] for row in turns), default=0) + 1
    told += [(row["step"] or last, 0, f"        {line_of(row)}") for row in events]
    told += [(row["turn"], 3, f"        {effect_line(row)}") for row in effects]
    # Of one turn's lines of a kind each stays behind the one before it.
    yield from (line for _, _, line in sorted(told, key=lambda row: row[:2]))


def _graph(name: str, archive: JobArchive, json: bool) -> None:
    from runtime.archive.timelines import run_tree
    from runtime.cli.graph import graph_document, graph_lines

    gaps: list[Gap] = []
    nodes = run_tree(archive, gaps)
    if json:
        damaged = [gap.document() for gap in gaps]
        json_document({"job": name, "runs": graph_document(nodes), "damaged": damaged})
        return
    say_all([name, *graph_lines(nodes), *map(gap_line, gaps)])
    _tell_gaps(name, gaps)


def turns_of(archive: JobArchive, run: str, parts: Readable) -> list[dict[str, Any]]:
    """The turns of a run that can be read, finished or in flight.

    A statement's outcome stands in the record that follows its turn.
    """
    from collections import Counter

    from runtime.cli.turns import form_of, statement_of

    steps, end = parts.steps, parts.end
    turns = []
    # Once for all turns: each look is a listing of a folder.
    form = form_of(archive)
    places = archive.lineage.places(run)
    attempts = Counter(place.turn for _, place in places if place.kind == "attempt")
    # By what a step says of its parent, and not by numbers: a run may go on from another run's
    # step.
    following: dict[str, Step | End] = {
        step.parent.key: step for step in steps if step.parent is not None
    }
    if end is not None and end.parent is not None:
        following.setdefault(end.parent.key, end)
    for step in steps:
        after = following.get(step.ref.key)
        source, problem = statement_of(form, step)
        if after is None and (parts.missing(step.turn + 1) or parts.missing_end):
            outcome = "not known"
        elif after is None and end is not None:
            outcome = "not executed"
        else:
            outcome = _outcome(step, after, source, problem)
        turns.append(
            {
                "turn": step.turn,
                "statement": source,
                "outcome": outcome,
                "capture": str(step.capture),
                "tokens": {"prompt": step.usage.prompt, "completion": step.usage.completion},
                "cost_usd": step.cost_usd,
                "started_at": step.started_at,
                "finished_at": step.finished_at,
                "attempts": attempts[step.turn],
                "failed": _failed(step.failed_attempts),
            }
        )
    flying = _flying(archive, run, parts)
    return turns if flying is None else [*turns, _without_reply(archive, run, flying, parts)]


def _without_reply(
    archive: JobArchive, run: str, flying: Attempt, parts: Readable
) -> dict[str, Any]:
    """The turn of an attempt that no step answers."""
    from runtime.archive.gaps import UNREADABLE, named_gap
    from runtime.archive.spending import untold

    try:
        outcome = "in flight" if parts.end is None else _unanswered(archive.failure(flying.key))
    except UNREADABLE as error:
        parts.gaps.append(named_gap(error, flying.turn))
        outcome = "not known"
    failed = _failed_of(archive, run, flying.turn)
    if parts.end is not None:
        # Of an attempt over which a worker died, its end alone tells.
        failed += untold(archive, run)
    return {
        "turn": flying.turn,
        "statement": None,
        "outcome": outcome,
        "capture": str(flying.capture),
        "tokens": {"prompt": 0, "completion": 0},
        "cost_usd": 0.0,
        "started_at": flying.started_at,
        "finished_at": None,
        "attempts": flying.number,
        "failed": _failed(failed),
    }


def _flying(archive: JobArchive, run: str, parts: Readable) -> Attempt | None:
    """The attempt in flight; none where it cannot be read, which is a gap."""
    from runtime.archive.gaps import UNREADABLE, named_gap

    try:
        return archive.in_flight(run)
    except UNREADABLE as error:
        turn = max((step.turn for step in parts.steps), default=0) + 1
        parts.gaps.append(named_gap(error, turn))
        return None


def summaries_of(archive: JobArchive, run: str, gaps: list[Gap]) -> list[dict[str, Any]]:
    """The calls by which a model wrote summaries for a run.

    ``turn`` is the one before whose call it was made.
    """
    from runtime.archive.calls import side_calls
    from runtime.archive.gaps import UNREADABLE, named_gap

    rows = []
    for call in side_calls(archive, run, gaps):
        try:
            step, attempts = call.step, call.attempts
            if not attempts:
                continue
            failure = call.archive.failure(attempts[-1].key) if step is None else None
        except UNREADABLE as error:
            gaps.append(named_gap(error, call.turn))
            continue
        outcome = "ok" if step is not None else _unanswered(failure)
        rows.append(
            {
                "turn": call.turn,
                "run": call.run,
                "outcome": outcome,
                "tokens": {
                    "prompt": step.usage.prompt if step else 0,
                    "completion": step.usage.completion if step else 0,
                },
                "cost_usd": step.cost_usd if step else 0.0,
                "started_at": attempts[0].started_at,
                "finished_at": step.finished_at if step else None,
                "attempts": len(attempts),
                "failed": _failed(
                    step.failed_attempts if step else _failed_of(call.archive, call.run, call.turn)
                ),
            }
        )
    return rows


def _failed(failed: Failed) -> dict[str, Any]:
    """What failed attempts used; where nobody reported it, an estimate."""
    return {
        "tokens": failed.usage.total,
        "cost_usd": failed.cost_usd,
        "reported": failed.usage.reported,
    }


def _failed_of(archive: JobArchive, run: str, turn: int) -> Failed:
    """What the attempts at a turn used of whose failure a record tells; nothing where that cannot
    be read, which is told as damage.
    """
    from runtime.archive.gaps import UNREADABLE
    from runtime.base.values import Failed

    try:
        failures = [archive.failure(attempt.key) for attempt in archive.attempts(run, turn)]
    except UNREADABLE:
        return Failed()
    return sum((failure.spent for failure in failures if failure is not None), Failed())


def _unanswered(failure: Failure | None) -> str:
    """How a call without a reply ended."""
    return "no reply" if failure is None else failure.error_type


def _outcome(step: Step, after: Step | End | None, source: str | None, problem: str | None) -> str:
    if problem is not None:
        return "bad reply"
    if source is None:
        return "message"
    execution = after.execution if after is not None else None
    if execution is None:
        return "not recorded yet" if after is None else "not executed"
    exception = execution.get("exception")
    status = execution.get("status", "recorded")
    unchecked = ", not type-checked" if execution.get("unchecked") else ""
    return (f"{status} {exception['type']}" if exception else str(status)) + unchecked


def turn_line(turn: dict[str, Any]) -> str:
    """``   3  ok              1,234+56 tokens  $0.0100  1.2s  foo = view(...)``."""
    from runtime.cli.text import first_line

    return _line(turn, turn["outcome"], first_line(turn["statement"] or ""))


def summary_line(summary: dict[str, Any]) -> str:
    """``   3  summary ok      1,234+56 tokens  $0.0100  1.2s  --run RUN~NAME``."""
    return _line(summary, f"summary {summary['outcome']}", f"--run {summary['run']}")


def _line(row: dict[str, Any], outcome: str, words: str) -> str:
    tokens = f"{row['tokens']['prompt']:,}+{row['tokens']['completion']:,} tokens"
    failed, about = row["failed"], "" if row["failed"]["reported"] else "about "
    spent = (
        f", on failed ones {about}{failed['tokens']:,} tokens, ${failed['cost_usd']:.4f}"
        if failed["tokens"]
        else ""
    )
    attempts = counted(row["attempts"], "attempt")
    retried = f"  ({attempts}{spent})" if row["attempts"] > 1 or spent else ""
    return (
        f"{row['turn']:4}  {outcome:<22}  {tokens:>18}  ${row['cost_usd']:.4f}  {_seconds(row):>6} "
        f" {words}{retried}"
    ).rstrip()


def _seconds(turn: dict[str, Any]) -> str:
    from datetime import datetime, timedelta

    if not turn["finished_at"]:
        return ""
    took = datetime.fromisoformat(turn["finished_at"]) - datetime.fromisoformat(turn["started_at"])
    # Nothing is known where the clock was set back meanwhile.
    return f"{took.total_seconds():.1f}s" if took >= timedelta() else ""
