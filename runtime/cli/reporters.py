"""What ``holdfast run`` prints while jobs run: plain lines or JSON lines; ``live.py`` has the table
for terminals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from runtime.base.plurals import counted
from runtime.base.standings import OPEN, waiting_for
from runtime.cli.output import json_line, note, say, stderr_is_terminal
from runtime.cli.text import first_line, one_line, shortened
from runtime.client.plans import Start
from runtime.client.wait_reasons import wait_of
from runtime.job.stops import JobStatus

if TYPE_CHECKING:
    from runtime.client.moves import Turn
    from runtime.client.plans import Plan
    from runtime.client.standing import Running, Trouble
    from runtime.client.watch import Retried
    from workflows.messages import JobOutcome


class Reporter(Protocol):
    """Hears of everything that ``holdfast run`` does."""

    def waiting(self, what: str) -> None:
        """What the command does before jobs run, which may take seconds: ``loading the model
        library``.
        """
        ...

    def planned(self, plan: Plan, where: str) -> None:
        """What the command is going to do, and on which server."""
        ...

    def listed(self, plan: Plan) -> None:
        """What would be done with each job, where nothing is started."""
        ...

    def begun(self, plan: Plan) -> None:
        """The jobs are submitted; those of the plan before that begin again by themselves have no
        end in this one.
        """
        ...

    def turn(self, turn: Turn) -> None:
        """A job has moved."""
        ...

    def ended(self, outcome: JobOutcome) -> None:
        """A job has ended."""
        ...

    def retried(self, event: Retried) -> None:
        """A run of a job has failed, and the job is started again."""
        ...

    def silent(self, reason: str) -> None:
        """The server does not answer and is asked again."""
        ...

    def closed(self, summary: Sequence[dict[str, Any]], resume: str | None, anew: str) -> None:
        """All have ended, or the command was interrupted and ``resume`` is the command that goes on
        with it.

        ``anew`` is the command that starts the jobs anew that ended without success.
        """
        ...

    def stop(self) -> None:
        """Nothing more comes; the terminal is left as it was found.

        May be called at any time and more than once.
        """
        ...


class PlainReporter:
    """A line for each turn, each wait, each failed attempt and each end."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, tuple[int, bool] | None, str, str]] = {}

    def waiting(self, what: str) -> None:
        """A line where somebody waits: on a terminal."""
        if stderr_is_terminal():
            note(f"{what} …")

    def planned(self, plan: Plan, where: str) -> None:
        """One line about the plan, and one that names the jobs that are left as they are although
        they failed.
        """
        say(f"batch {plan.batch}: {plan.sentence()} ({where})")
        if (failed := plan.failed) and len(plan.counted(Start.DONE)) < len(plan.ids):
            names = ", ".join(job.id for job in failed[:NAMED]) + (
                ", …" if len(failed) > NAMED else ""
            )
            say(f"not started anew without --rerun-failed: {names}")

    def listed(self, plan: Plan) -> None:
        """A line for each of the first jobs."""
        for job in islice(plan.jobs, LISTED):
            how = f", {job.outcome.status}" if job.outcome else ""
            say(
                f"{plan.batch}/{job.id}  {job.start}{how}"
                + (f", turn {job.turn}" if job.turn else "")
            )
        if len(plan.ids) > LISTED:
            say(f"and {len(plan.ids) - LISTED:,} more")

    def begun(self, plan: Plan) -> None:
        """Nothing: a note tells how many begin again."""

    def turn(self, turn: Turn) -> None:
        """A line for each new turn, each wait, each command that takes long, and each attempt that
        follows a failed one.
        """
        attempt = (turn.trouble.attempt, turn.trouble.held) if turn.trouble else None
        waits = wait_of(turn.progress)
        command = turn.running.command if turn.running else turn.awaits
        now = (turn.progress.turn, attempt, waits, command)
        before = self._told.get(str(turn.key), (0, None, "", ""))
        if now == before:
            return
        self._told[str(turn.key)] = now
        # That a wait or a command is over is no news within a turn.
        if attempt or waits or command or now[0] != before[0]:
            say(progress_line(turn))

    def ended(self, outcome: JobOutcome) -> None:
        """A line for each end."""
        self._told.pop(str(outcome.key), None)
        say(outcome_line(outcome))

    def retried(self, event: Retried) -> None:
        """A line for each."""
        say(retried_line(event))

    def silent(self, reason: str) -> None:
        """A line on stderr."""
        note(silence_line(reason))

    def closed(self, summary: Sequence[dict[str, Any]], resume: str | None, anew: str) -> None:
        """The results, how it all came out, and last the jobs that failed."""
        for job in summary:
            if job["result"] is not None:
                say(f"{job['job']}: {_short(job['result'])}")
            if (left := job["workspace"]) is not None and left["changed"]:
                paths = counted(left["changed"], "path")
                say(f"{job['job']}: {paths} changed: holdfast workspace diff {job['job']}")
            if (patch := job["patch"]) is not None:
                told = f"a patch of {counted(patch['paths'], 'path')}, {patch['bytes']:,} bytes"
                say(f"{job['job']}: {told}: holdfast workspace patch {job['job']} --handed")
            if left is not None and left["kept"]:
                files = counted(len(left["kept"]), "file")
                say(
                    f"{job['job']}: {files} kept: holdfast workspace export {job['job']} DIR --kept"
                )
        say(totals_line(summary))
        if resume is not None:
            left = sum(job["status"] == OPEN for job in summary)
            say(
                f"interrupted: {left} of {len(summary)} jobs are not done; to go on with them:"
                f" {resume}"
            )
        failed = [job for job in summary if job["status"] not in {OPEN, JobStatus.SUCCEEDED}]
        if failed:
            say(f"{len(failed)} ended without success; to start them anew: {anew}")
        for job in failed:
            say(f"  {job['job']}  {job['status']}: {one_line(job['reason'])}")

    def stop(self) -> None:
        """Nothing to do."""


class JsonReporter:
    """One JSON object a line, the last one the summary."""

    def waiting(self, what: str) -> None:
        """A program knows how to wait."""

    def planned(self, plan: Plan, where: str) -> None:
        """``{"event": "plan", ...}``."""
        jobs = [{"id": job.id, "start": job.start, "turn": job.turn} for job in plan.jobs]
        json_line({"event": "plan", "batch": plan.batch, "server": where, "jobs": jobs})

    def listed(self, plan: Plan) -> None:
        """The plan's line says it all."""

    def begun(self, plan: Plan) -> None:
        """Their turns and ends say it all."""

    def turn(self, turn: Turn) -> None:
        """``{"event": "turn", ...}``."""
        seen, trouble = turn.progress, turn.trouble
        where = {"job": str(turn.key), "id": turn.key.job, "turn": seen.turn, "phase": seen.phase}
        spent = {"tokens": seen.usage.total, "cost_usd": seen.cost_usd, "statement": seen.statement}
        problem = (
            {"error": trouble.error, "attempt": trouble.attempt, "held": trouble.held}
            if trouble
            else None
        )
        runs = turn.running
        running = {"command": runs.command, "line": runs.line} if runs else None
        doing = {"trouble": problem, "running": running, "awaits": turn.awaits or None}
        json_line({"event": "turn", **where, **spent, **doing})

    def ended(self, outcome: JobOutcome) -> None:
        """``{"event": "end", ...}``."""
        about = {"job": str(outcome.key), "id": outcome.key.job}
        json_line({"event": "end", **about, "status": outcome.status, "reason": outcome.reason})

    def retried(self, event: Retried) -> None:
        """``{"event": "retried", ...}``."""
        outcome = event.outcome
        about = {"job": str(outcome.key), "id": outcome.key.job, "run": outcome.run}
        why = {"cause": outcome.cause, "reason": outcome.reason}
        json_line({"event": "retried", **about, **why, "retry": event.again})

    def silent(self, reason: str) -> None:
        """``{"event": "silent", ...}``."""
        json_line({"event": "silent", "reason": reason})

    def closed(self, summary: Sequence[dict[str, Any]], resume: str | None, anew: str) -> None:
        """``{"event": "summary", ...}``."""
        failed = any(job["status"] not in {OPEN, JobStatus.SUCCEEDED} for job in summary)
        ways = {"resume": resume, "rerun": anew if failed else None}
        json_line(
            {"event": "summary", "interrupted": resume is not None, **ways, "jobs": list(summary)}
        )

    def stop(self) -> None:
        """Nothing to do."""


NAMED = 8
"""So many jobs are named one by one."""

LISTED = 20
"""So many jobs have a line of their own where nothing is started."""


def progress_line(turn: Turn) -> str:
    """``nightly/licences  turn 3  1,234 tokens  $0.0100  foo = view(...)``, or what goes on or
    wrong in the statement's place.
    """
    seen = turn.progress
    last = doing_text(turn, wait_of(seen) or first_line(seen.statement))
    counts = f"turn {seen.turn}  {seen.usage.total:,} tokens  ${seen.cost_usd:.4f}"
    return f"{turn.key}  {counts}  {last}".rstrip()


def doing_text(turn: Turn, quiet: str) -> str:
    """What goes on or wrong in a job's turn, the most important alone; ``quiet`` if nothing is."""
    # Trouble matters more than a question, and that more than a command.
    if turn.trouble is not None:
        return trouble_text(turn.trouble)
    if turn.awaits:
        return waiting_for(turn.awaits)
    if turn.running is not None:
        return running_text(turn.running)
    return quiet


def running_text(running: Running) -> str:
    """``runs: pytest -q | 3 passed``."""
    line = f" | {shortened(one_line(running.line), 100)}" if running.line else ""
    return f"runs: {shortened(one_line(running.command), 80)}{line}"


def trouble_text(trouble: Trouble) -> str:
    """``attempt 3 in 4 s, after ConnectionFailed: ...``."""
    if trouble.held:
        return shortened(one_line(trouble.error), 200)
    when = f" in {trouble.seconds:.0f} s" if trouble.seconds >= 1 else ""
    return f"attempt {trouble.attempt}{when}, after {shortened(one_line(trouble.error), 200)}"


def silence_line(reason: str) -> str:
    """That the server is waited for."""
    return (
        f"the Temporal server does not answer ({one_line(reason)}); the jobs are safe, asking again"
    )


def outcome_line(outcome: JobOutcome) -> str:
    """``nightly/licences  succeeded after 5 turns  12,345 tokens  $0.1000``."""
    turns = counted(outcome.turns, "turn")
    reason = "" if outcome.status == "succeeded" else f": {one_line(outcome.reason)}"
    return (
        f"{outcome.key}  {outcome.status} after {turns}  {outcome.usage.total:,} tokens "
        f" ${outcome.cost_usd:.4f}{reason}"
    )


def retried_line(event: Retried) -> str:
    """``nightly/licences  failed (provider) after 2 turns, retry 1 begins: ...``."""
    outcome = event.outcome
    return (
        f"{outcome.key}  failed ({outcome.cause}) after {counted(outcome.turns, 'turn')}, retry"
        f" {event.again} begins: {one_line(outcome.reason)}"
    )


def totals_line(summary: Sequence[dict[str, Any]]) -> str:
    """How many jobs ended how, and what they cost together."""
    counts: dict[str, int] = {}
    for job in summary:
        counts[job["status"]] = counts.get(job["status"], 0) + 1
    below = [one for job in summary if (one := job["sub_jobs"]) is not None]
    spent = [*summary, *below]
    tokens, cost = sum(one["tokens"] for one in spent), sum(one["cost_usd"] for one in spent)
    sub_jobs = f", with {counted(sum(one['jobs'] for one in below), 'sub-job')}" if below else ""
    return f"{by_status(counts)}; {tokens:,} tokens, ${cost:.4f}{sub_jobs}"


def by_status(counts: Mapping[str, int]) -> str:
    """``3 queued, 2 running, 12 succeeded``, without those that no job has."""
    return ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)


def _short(result: Any, limit: int = 300) -> str:
    import json

    return shortened(one_line(json.dumps(result, ensure_ascii=False)), limit)
