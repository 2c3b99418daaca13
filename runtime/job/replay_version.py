"""Which histories this code replays.

A job runs for days, so a release meets jobs that another one began.
"""

from __future__ import annotations

REPLAY_VERSION = 1
"""Raised by hand whenever a change of workflow code makes other commands, or the same in another
order, of a history that is there already. ``tests/releases`` fails until it is. See
docs/releases.md, also for ``patched`` of ``workflows/patches.py``, which needs no raise.
"""

COMPATIBLE = frozenset({0})
"""Earlier versions whose histories this code replays too. 0 are those from before there was a
version.
"""


def replays(version: int) -> bool:
    """Whether this code replays a history of that version."""
    return version == REPLAY_VERSION or version in COMPATIBLE
