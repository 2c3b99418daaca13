"""What is to be run: jobs a day, and what a job is like."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

MOST = 1e12
"""What no figure of a load is above: beyond it sums are none."""


class WrongLoad(ValueError):
    """A figure of a load makes no sense; the message names it."""


@dataclass(frozen=True)
class Load:
    """Means over all jobs. Guesses are as good as what they are made of: take them from
    ``holdfast results`` of a batch that was run.
    """

    jobs_per_day: float
    turns: float = 20
    prompt_tokens: float = 20_000
    """Of one call, with all that it has from before."""
    completion_tokens: float = 300
    new_tokens: float = 500
    """What a turn brings into the prompt beside the reply: output, parts of files."""
    call_seconds: float = 10
    effects: float = 1
    """Commands and calls of tools in a turn."""
    effect_seconds: float = 2
    peak: float = 3
    """The busiest hour's rate over the day's mean."""
    retention_days: float = 30
    """How long Temporal keeps histories of closed runs."""
    archive_days: float = 365
    """How long the archive keeps jobs."""
    bytes_per_token: float = 4
    worker_cores: float = 0.7
    """The share of a core that a worker's process may be busy: it has one interpreter lock."""

    def __post_init__(self) -> None:
        """Raises:
        WrongLoad: a figure is below zero, no number, too large, or zero where there must be some.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in _MAY_BE_NONE else math.ulp(0)
            # In this form, so that NaN fails it too.
            if not (least <= value <= MOST):
                more = "a number, 0 or more" if not least else "a number above 0"
                more = f"at most {MOST:g}" if value > MOST else more
                raise WrongLoad(f"{option(field.name)}: expected {more}, got {value:g}")
        if self.turns < 1:
            raise WrongLoad(f"--turns: a job has one at least, got {self.turns:g}")
        if self.peak < 1:
            raise WrongLoad(f"--peak: the busiest hour is no slower than the mean, got {self.peak}")
        if self.worker_cores > 1:
            raise WrongLoad(f"--worker-cores: expected at most 1, got {self.worker_cores:g}")


_MAY_BE_NONE = frozenset(
    {"completion_tokens", "new_tokens", "call_seconds", "effects", "effect_seconds", "archive_days"}
)


def option(name: str) -> str:
    """A field as the command line has it."""
    return "--" + name.replace("_", "-")
