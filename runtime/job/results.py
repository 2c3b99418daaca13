"""What the framework tells the model after a turn: outcomes of statements, problems of replies,
budgets.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.base.dollars import dollars
from runtime.base.fences import fenced
from runtime.interpreter.executions import Execution, ExecutionStatus

NOBODY_THERE = (
    "Your message was recorded for the user. This job runs unattended: nobody will answer. Go on"
    " with a statement, or end the job with finish(result); three replies in a row without a"
    " statement end it as failed."
)

NEARLY_SPENT = 0.1
"""The share of a budget from which on the model is warned."""

LAST_TURN = "; this is the last turn: hand in what you have with finish(result)"


def execution_text(execution: Execution, turn: int) -> str:
    """A statement's outcome: status, what it printed, and its exception."""
    head, lines = f"[turn {turn}: {execution.status}]", list[str]()
    if execution.stdout:
        lines.append(execution.stdout.rstrip("\n"))
    if execution.stderr:
        lines.append(f"stderr:\n{execution.stderr.rstrip()}")
    if execution.exception is not None:
        error = execution.exception
        lines.append(error.trace_summary.strip() or f"{error.type}: {error.message}")
    elif execution.status is ExecutionStatus.OK and not lines:
        return f"{head}\n(no output)"
    said = "\n".join(lines)
    return f"{head}\n{fenced(said)}" if lines else head


@dataclass(frozen=True)
class Spending:
    """What a job has used of what it may use, for the budget line."""

    turn: int
    turns: int
    tokens_used: int
    tokens: int
    usd_used: float
    usd: float
    wall_left: float
    deadline_left: float | None = None
    wall: float = 0.0
    call_tokens: int = 0
    call_usd: float = 0.0
    """What the last call took: the next takes about as much."""

    def line(self, *, cents: bool = True) -> str:
        """One line of the prompt's tail. ``cents``: of a budget below a dollar it tells parts of
        them, too, which may be all that there is.
        """
        small = cents and self.usd < 1
        used, usd = (dollars(one) if small else f"${one:.2f}" for one in (self.usd_used, self.usd))
        deadline = (
            "" if self.deadline_left is None else f"; deadline in {_duration(self.deadline_left)}"
        )
        return (
            f"[budget: turn {self.turn} of {self.turns}; {self.tokens_used:,} of {self.tokens:,}"
            f" tokens; {used} of {usd}; {_duration(self.wall_left)}"
            f" left{deadline}{self._warning()}]"
        )

    @property
    def is_last(self) -> bool:
        """Whether what is left after this turn holds no other."""
        tokens, usd = self.tokens - self.tokens_used, self.usd - self.usd_used
        # Twice: the call of this turn is not booked yet when its prompt says so.
        return (
            self.turn >= self.turns
            or (self.call_tokens > 0 and tokens < 2 * self.call_tokens)
            or (self.call_usd > 0 and usd < 2 * self.call_usd)
        )

    def _warning(self) -> str:
        if self.is_last:
            return LAST_TURN
        short = [
            name
            for name, left, whole in (
                ("turns", self.turns - self.turn + 1, self.turns),
                ("tokens", self.tokens - self.tokens_used, self.tokens),
                ("dollars", self.usd - self.usd_used, self.usd),
                ("time", self.wall_left, self.wall),
            )
            if left <= whole * NEARLY_SPENT and whole > 0
        ]
        return (
            f"; at most a tenth of the {' and '.join(short)} is left: finish soon" if short else ""
        )


def _duration(seconds: float) -> str:
    minutes = int(max(seconds, 0) // 60)
    return f"{minutes // 60}h{minutes % 60:02d}m" if minutes >= 60 else f"{minutes}m"
