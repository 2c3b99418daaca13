"""What Python's garbage collector looks through, and how often: less than by default."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG_OBJECTS = 10_000
"""Objects that are made between two looks. By default they are 700, and what reads an archive or
takes a turn makes thousands, which go with it.
"""


def look_less_often() -> None:
    """From now on, in this process."""
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def loading() -> Iterator[None]:
    """What is made within the block, such as modules, stays: it is never looked through.

    litellm alone is half a million objects, and to look through them again and again takes up to
    half of the time that its import takes.
    """
    if gc.get_threshold()[0] != _YOUNG_OBJECTS:
        # Not a process of ours: what is garbage in it by now would stay with the rest.
        gc.collect()
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if looked:
            gc.enable()
