"""What ``holdfast run`` prints while jobs run: a live table on a terminal, plain lines elsewhere, or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from runtime.cli.output import json_line, say
from runtime.cli.text import one_line

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from runtime.control import Plan, Turn
    from workflows.messages import JobOutcome


class Reporter(Protocol):
    """Hears of everything that ``holdfast run`` does."""

    def planned(self, plan: Plan, where: str) -> None:
        """What the command is going to do, and on which server."""
        ...

    def turn(self, turn: Turn) -> None:
        """A job has moved."""
        ...

    def ended(self, outcome: JobOutcome) -> None:
        """A job has ended."""
        ...

    def closed(self, summary: Sequence[dict[str, Any]], note: str | None) -> None:
        """All have ended, or the command was interrupted (``note`` says so)."""
        ...


class PlainReporter:
    """A line for each thing that happens."""

    def planned(self, plan: Plan, where: str) -> None:
        """One line about the plan."""
        say(f"batch {plan.batch}: {plan.sentence()} ({where})")

    def turn(self, turn: Turn) -> None:
        """A line for each new turn."""
        say(progress_line(turn))

    def ended(self, outcome: JobOutcome) -> None:
        """A line for each end."""
        say(outcome_line(outcome))

    def closed(self, summary: Sequence[dict[str, Any]], note: str | None) -> None:
        """The results, and how it all came out."""
        for job in summary:
            if job["result"] is not None:
                say(f"{job['job']}: {_short(job['result'])}")
        say(note or totals_line(summary))


class JsonReporter:
    """One JSON object a line, the last one the summary."""

    def planned(self, plan: Plan, where: str) -> None:
        """``{"event": "plan", ...}``."""
        jobs = [{"id": job.spec.id, "start": job.start, "turn": job.turn} for job in plan.jobs]
        json_line({"event": "plan", "batch": plan.batch, "server": where, "jobs": jobs})

    def turn(self, turn: Turn) -> None:
        """``{"event": "turn", ...}``."""
        json_line({"event": "turn", "job": str(turn.key), **turn.progress.model_dump(mode="json", exclude={"status"})})

    def ended(self, outcome: JobOutcome) -> None:
        """``{"event": "end", ...}``."""
        json_line({"event": "end", "job": str(outcome.key), "status": outcome.status, "reason": outcome.reason})

    def closed(self, summary: Sequence[dict[str, Any]], note: str | None) -> None:
        """``{"event": "summary", ...}``."""
        json_line({"event": "summary", "interrupted": note is not None, "jobs": list(summary)})


class LiveReporter(PlainReporter):
    """A table of the open jobs that redraws itself, with the ended ones as lines above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: dict[str, Turn] = {}
        self._live: Live = Live(console=Console(), refresh_per_second=4, transient=True)

    def planned(self, plan: Plan, where: str) -> None:
        """Prints the plan and begins to draw."""
        super().planned(plan, where)
        self._live.start()

    def turn(self, turn: Turn) -> None:
        """Updates the job's row."""
        self._rows[str(turn.key)] = turn
        self._live.update(self._table())

    def ended(self, outcome: JobOutcome) -> None:
        """Moves the job from the table to the lines."""
        self._rows.pop(str(outcome.key), None)
        self._live.console.print(outcome_line(outcome), markup=False, highlight=False)
        self._live.update(self._table())

    def closed(self, summary: Sequence[dict[str, Any]], note: str | None) -> None:
        """Stops drawing and prints the results."""
        self._live.stop()
        super().closed(summary, note)

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for title in ("job", "turn", "phase", "tokens", "cost", "statement"):
            table.add_column(title, justify="right" if title in ("turn", "tokens", "cost") else "left", no_wrap=True)
        for name, row in self._rows.items():
            seen = row.progress
            cells = (
                name,
                str(seen.turn),
                seen.phase,
                f"{seen.usage.total:,}",
                f"${seen.cost_usd:.4f}",
                first_line(seen.statement),
            )
            table.add_row(*(Text(cell) for cell in cells))
        return table


def progress_line(turn: Turn) -> str:
    """``nightly/licences  turn 3  executing  1,234 tokens  $0.0100  foo = view(...)``."""
    seen = turn.progress
    return f"{turn.key}  turn {seen.turn}  {seen.phase}  {seen.usage.total:,} tokens  ${seen.cost_usd:.4f}  {first_line(seen.statement)}".rstrip()


def outcome_line(outcome: JobOutcome) -> str:
    """``nightly/licences  succeeded after 5 turns  12,345 tokens  $0.1000``."""
    turns = f"{outcome.turns} turn{'' if outcome.turns == 1 else 's'}"
    reason = "" if outcome.status == "succeeded" else f": {one_line(outcome.reason)}"
    return f"{outcome.key}  {outcome.status} after {turns}  {outcome.usage.total:,} tokens  ${outcome.cost_usd:.4f}{reason}"


def totals_line(summary: Sequence[dict[str, Any]]) -> str:
    """How many jobs ended how, and what they cost together."""
    counts: dict[str, int] = {}
    for job in summary:
        counts[job["status"]] = counts.get(job["status"], 0) + 1
    listed = ", ".join(f"{count} {status}" for status, count in counts.items())
    tokens, cost = sum(job["tokens"] for job in summary), sum(job["cost_usd"] for job in summary)
    return f"{listed}; {tokens:,} tokens, ${cost:.4f}"


def first_line(source: str, limit: int = 70) -> str:
    """The first line of a statement that says something, cut to ``limit`` characters."""
    line = next((line for line in source.splitlines() if line.strip()), "")
    text = one_line(line)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _short(result: Any, limit: int = 300) -> str:
    import json

    text = one_line(json.dumps(result, ensure_ascii=False))
    return text if len(text) <= limit else text[: limit - 1] + "…"
