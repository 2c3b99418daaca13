"""What Python's garbage collector looks through, and how often: less than by default."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG_OBJECTS = 10_000
"""Objects that are made between two looks. By default they are 700, and what reads an archive or
takes a turn makes thousands, which go with it.
"""

_own = False
"""Whether this process is one of ours, and not of somebody who imports us."""


def begin_process() -> None:
    """A process of ours begins."""
    global _own
    _own = True
    look_less_often()


def look_less_often() -> None:
    """From now on, in this process."""
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def loading() -> Iterator[None]:
    """Nothing is looked through while modules are loaded within the block; in a process of ours,
    what there is at its end is never looked through again, some thousands of objects of garbage
    that an import leaves behind included.

    litellm alone is half a million objects, and to look through them again and again takes up to
    half of the time that its import takes.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
        # What somebody else's program has, and will leave behind, is not ours to keep.
        if _own:
            gc.freeze()
    finally:
        if looked:
            gc.enable()
