"""The live table of ``holdfast run``, for a terminal of any size: what counts first, and never more
lines than there are.

::

    5 queued, 1 running, 1 waiting, 1 failed, 12 succeeded of 20  0:12:41  $1.2345  1,234,567 tokens
    job                  turn      tokens      cost  now        statement
    licences-of-…-files    12      12,345   $0.0100  model      foo = view("src/foo.py")
    … and 1 more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from runtime.base.standings import QUEUED, RUNNING
from runtime.cli.reporters import by_status, doing_text
from runtime.cli.text import first_line
from runtime.client.moves import Turn
from runtime.client.statuses import held_up
from runtime.client.wait_reasons import is_paused
from runtime.job.phases import Phase
from workflows.messages import JobOutcome

GAP = "  "
TURN, TOKENS, COST, NOW = 5, 11, 9, 10
"""Widths of columns, in cells.

A job's name has what it needs up to a quarter of the line, its statement what is left.
"""

JOB_LEAST = 12
NARROW = 72
"""A terminal of fewer columns does not show what a job does now; its statement says most of
that.
"""

SPARE = 1
"""Lines of the terminal that are left free: a table as high as the terminal would scroll it."""


@dataclass
class Board:
    """What is known of the jobs of one command that began at ``began`` (seconds on the clock of
    ``drawn``).
    """

    began: float
    waiting: str = ""
    """What start-up waits for; shown until a job has moved."""
    jobs: int = 0
    rows: dict[str, Turn] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    """Jobs that ended, by status."""
    cost: float = 0.0
    tokens: int = 0

    def planned(self, jobs: int, outcomes: Iterable[JobOutcome]) -> None:
        """There are so many jobs; some ended before. What was planned until now is forgotten."""
        self.jobs, self.ends, self.cost, self.tokens = jobs, Counter(), 0.0, 0
        for outcome in outcomes:
            self.ended(outcome)

    def turn(self, turn: Turn) -> None:
        """A job has moved."""
        self.waiting = ""
        self.rows[turn.key.job] = turn

    def ended(self, outcome: JobOutcome) -> None:
        """A job has ended."""
        self.rows.pop(outcome.key.job, None)
        self.ends[outcome.status] += 1
        self.cost += outcome.cost_usd
        self.tokens += outcome.usage.total

    def drawn(self, width: int, height: int, now: float) -> Text:
        """The table on a terminal of ``width`` columns and ``height`` lines."""
        lines = list(self._head(width, now))
        room = max(height - SPARE - len(lines) - 1, 1)
        rows = list(self.rows.values())
        shown = rows if len(rows) <= room else rows[: max(room - 1, 1)]
        if shown:
            lines += _table(shown, width)
        if more := len(rows) - len(shown):
            lines.append(Text(f"… and {more} more"))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join(lines)

    def _head(self, width: int, now: float) -> Iterator[Text]:
        """How many jobs stand how, the time and the money: one line, two where one has no room."""
        spent = [clock_text(now - self.began)]
        counts = ""
        if self.jobs:
            begun = Counter(map(_status, self.rows.values()))
            queued = max(self.jobs - begun.total() - self.ends.total(), 0)
            told = {QUEUED: queued, RUNNING: begun.pop(RUNNING, 0), **begun, **self.ends}
            counts = f"{by_status(told)} of {self.jobs:,}"
            cost = self.cost + sum(row.progress.cost_usd for row in self.rows.values())
            tokens = self.tokens + sum(row.progress.usage.total for row in self.rows.values())
            spent += [f"${cost:.4f}", f"{tokens:,} tokens"]
        whole = GAP.join(filter(None, [counts, *spent]))
        if len(whole) <= width:
            yield Text(whole)
        else:
            yield from (Text(counts), Text(GAP.join(spent)))
        if self.waiting:
            yield Text(f"{self.waiting} …")


def _status(turn: Turn) -> str:
    """What ``ls`` calls it."""
    held = held_up(turn)
    return RUNNING if held is None else held[0]


def _table(rows: list[Turn], width: int) -> Iterator[Text]:
    longest = max(cell_len(row.key.job) for row in rows)
    job = max(min(longest, max(JOB_LEAST, width // 4)), len("job"))
    now = NOW if width >= NARROW else 0

    def line(name: str, turn: str, tokens: str, cost: str, doing: str, statement: str) -> Text:
        cells = [
            wide(middle(name, job), job),
            f"{turn:>{TURN}}",
            f"{tokens:>{TOKENS}}",
            f"{cost:>{COST}}",
        ]
        return Text(GAP.join([*cells, *([wide(doing, now)] if now else []), statement]))

    yield line("job", "turn", "tokens", "cost", "now", "statement")
    for row in rows:
        seen = row.progress
        yield line(
            row.key.job,
            str(seen.turn),
            f"{seen.usage.total:,}",
            f"${seen.cost_usd:.4f}",
            Phase.PAUSED if is_paused(seen) else seen.phase,
            doing_text(row, first_line(seen.statement, width)),
        )


def middle(name: str, width: int) -> str:
    """``name`` without its middle where it is too long: names of one batch differ at either end."""
    if cell_len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}…{name[-(width - 1 - head) :]}"


def wide(text: str, width: int) -> str:
    """``text`` with blanks up to ``width`` cells."""
    return text + " " * (width - cell_len(text))


def clock_text(seconds: float) -> str:
    """``1:02:03``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
