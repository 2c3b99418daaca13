"""By which rules statements are lowered and told of: those that a run began with."""

from enum import IntEnum


class Dialect(IntEnum):
    """One after the other, each with the rules of those before. Runs go by patches to it
    (``workflows/patches.py``, which tells what each of them brought).
    """

    FIRST = 0
    WRITES = 1
    NATURAL = 2
    FAITHFUL = 3
    ALIKE = 4
    LAID_OUT = 5
    ON_ONE_LINE = 6
    ASKING = 7
    LATEST = ASKING
