"""What may happen to a call of a tool when something ends in its midst."""

from __future__ import annotations

from enum import StrEnum

OUTCOME_UNKNOWN = "OutcomeUnknown"
"""The exception of a call that began, of which nobody knows how it ended, and that is not made
again.
"""


class EffectClass(StrEnum):
    """How often a tool may run for one call."""

    PURE = "pure"
    """It changes nothing: any number of times."""
    IDEMPOTENT = "idempotent"
    """Running it twice is running it once: again, where it is not known whether it has run."""
    ONCE = "once"
    """At most once: never again, where it is not known whether it has run."""


class Approval(StrEnum):
    """Whether a person is asked before a tool is called."""

    NEVER = "never"
    ALWAYS = "always"
    ONCE_PER_ARGS = "once-per-args"
    """Once in a job for equal arguments, if the answer is yes."""
