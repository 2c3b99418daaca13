"""The numbers under which a turn's effects are archived.

Those of its statement count from 0. What was read without a statement's asking has numbers that no
statement reaches (it may have 1,000 effects).
"""

from __future__ import annotations

HANDED_PATCH = 780_000
"""The patch that is handed over with a job's result is archived as an effect of the last turn."""

WAIT_EFFECTS = 800_000
"""The readings of a sleeping job's ticks are archived as effects of the turn that it fell asleep
in, from this number on.
"""

PREPARED_EFFECTS = 850_000
"""What a preparation read is archived as an effect of the turn in which it was begun, from this
number on.
"""

TICK = 999_999
"""The readings of a turn's own tick."""

UNWRITTEN = 0
"""In place of a preparation's effect: nothing was read, since a summary could not be written."""

_PREPARED = 100_000


def prepared_effect(preparation: int) -> int:
    """The number of what a job's nth preparation read."""
    # A key has six digits for it; a hundred thousand preparations later the turn is another.
    return PREPARED_EFFECTS + preparation % _PREPARED


def is_of_statement(effect: int) -> bool:
    """Whether an effect of that number is one that a statement asked for."""
    return effect < HANDED_PATCH


def number_of(effect: int) -> int:
    """Which preparation an effect is of; 0 for ``UNWRITTEN``, which tells of none."""
    return max(effect - PREPARED_EFFECTS, 0)


def is_prepared(effect: int) -> bool:
    """Whether an effect of that number was prepared in the background."""
    return PREPARED_EFFECTS <= effect < PREPARED_EFFECTS + _PREPARED
