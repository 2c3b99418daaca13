"""What ``holdfast run`` shows on a terminal: a table of the jobs that run, which redraws itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.live import Live

from runtime.base.controls import clean
from runtime.cli.board import Board
from runtime.cli.drawing import begin_drawing, table_console
from runtime.cli.output import notes_to
from runtime.cli.reporters import PlainReporter, outcome_line, retried_line, silence_line
from runtime.client.moves import Turn
from runtime.client.plans import Plan, Start
from runtime.client.watch import Retried
from workflows.messages import JobOutcome


class LiveReporter(PlainReporter):
    """The table, with the jobs that ended as lines above it."""

    def __init__(self) -> None:
        super().__init__()
        self._console = table_console()
        self._board = Board(began=time.monotonic())
        self._live: Live | None = None

    def waiting(self, what: str) -> None:
        """Shows what is waited for in the table's place."""
        self._board.waiting = what
        self._begin()

    def planned(self, plan: Plan, where: str) -> None:
        """Prints the plan and begins to draw."""
        self.stop()
        super().planned(plan, where)
        self.begun(plan)
        if len(plan.counted(Start.DONE)) < len(plan.ids):
            self._begin()

    def begun(self, plan: Plan) -> None:
        """Counts the jobs anew."""
        self._board.planned(len(plan.ids), list(plan.ended.values()))

    def turn(self, turn: Turn) -> None:
        """Updates the job's row."""
        self._board.turn(turn)

    def ended(self, outcome: JobOutcome) -> None:
        """Moves the job from the table to the lines."""
        self._board.ended(outcome)
        self._print(outcome_line(outcome))

    def retried(self, event: Retried) -> None:
        """A line above the table."""
        self._print(retried_line(event))

    def silent(self, reason: str) -> None:
        """A line above the table."""
        self._print(silence_line(reason))

    def closed(self, summary: Sequence[dict[str, Any]], resume: str | None, anew: str) -> None:
        """Stops drawing and prints the results."""
        self.stop()
        super().closed(summary, resume, anew)

    def stop(self) -> None:
        """Stops drawing and shows the cursor again."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        notes_to(None)

    def _begin(self) -> None:
        if self._live is not None:
            return
        notes_to(self._print)
        # A new one each time: one that was stopped still believes its last lines to be on the
        # screen.
        self._live = begin_drawing(self._console, self._drawn, 4)

    def _print(self, line: str) -> None:
        self._console.print(clean(line), soft_wrap=True)

    def _drawn(self) -> RenderableType:
        width, height = self._console.size
        return self._board.drawn(width, height, time.monotonic())
