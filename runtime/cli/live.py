"""What ``holdfast run`` shows on a terminal: a table of the jobs that run, which redraws itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runtime.cli.output import stdout
from runtime.cli.reporters import PlainReporter, first_line, outcome_line, silence_line, trouble_text
from runtime.cli.text import clean
from runtime.plans import Plan, Start
from runtime.watch import Turn
from workflows.messages import JobOutcome

COLUMNS = ("job", "turn", "phase", "tokens", "cost", "statement")
_RIGHT = frozenset({"turn", "tokens", "cost"})


class LiveReporter(PlainReporter):
    """The table, with the jobs that ended as lines above it."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(file=stdout(), highlight=False, markup=False, emoji=False)
        self._rows: dict[str, Turn] = {}
        self._ended = self._jobs = 0
        self._live = Live(console=self._console, refresh_per_second=4, transient=True, get_renderable=self._drawn)

    def planned(self, plan: Plan, where: str) -> None:
        """Prints the plan and begins to draw."""
        super().planned(plan, where)
        self._jobs, self._ended = len(plan.jobs), len(plan.counted(Start.DONE))
        if self._ended < self._jobs:
            self._live.start()

    def turn(self, turn: Turn) -> None:
        """Updates the job's row."""
        self._rows[str(turn.key)] = turn

    def ended(self, outcome: JobOutcome) -> None:
        """Moves the job from the table to the lines."""
        self._rows.pop(str(outcome.key), None)
        self._ended += 1
        self._print(outcome_line(outcome))

    def silent(self, reason: str) -> None:
        """A line above the table."""
        self._print(silence_line(reason))

    def closed(self, summary: Sequence[dict[str, Any]], resume: str | None) -> None:
        """Stops drawing and prints the results."""
        self.stop()
        super().closed(summary, resume)

    def stop(self) -> None:
        """Stops drawing and shows the cursor again."""
        self._live.stop()

    def _print(self, line: str) -> None:
        self._console.print(clean(line), soft_wrap=True)

    def _drawn(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for title in COLUMNS:
            table.add_column(title, justify="right" if title in _RIGHT else "left", no_wrap=True)
        for name, row in self._rows.items():
            seen = row.progress
            last = trouble_text(row.trouble) if row.trouble else first_line(seen.statement)
            cells = (name, str(seen.turn), seen.phase, f"{seen.usage.total:,}", f"${seen.cost_usd:.4f}", last)
            table.add_row(*(Text(cell) for cell in cells))
        count = Text(f"{self._ended} of {self._jobs} jobs ended, {len(self._rows)} run")
        return Group(table, count) if self._rows else Group(count)
