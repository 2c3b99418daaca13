"""How many of a user's messages a turn begins with.

Of what waits, a prompt gets as much as it has room for; the others wait for the next turn. All at
once, those that do not fit would be forgotten before the model was shown them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

SHARE = 4
"""The part of a prompt that messages may take: one of so many."""

MOST_BYTES = 512 * 1024
"""What they may have in UTF-8: in a history a turn's call stands with its new texts, of which
Temporal takes 2 MiB.
"""


def room_for(messages: Sequence[str], count: Callable[[str], int], limit: int) -> int:
    """How many of the first ``messages`` a turn begins with, if its prompt may have ``limit``
    tokens: one at least, if there is one.
    """
    tokens = size = taken = 0
    for text in messages:
        size += len(text.encode(errors="replace"))
        if taken:
            # The first is not counted where it is alone, as it mostly is.
            if size > MOST_BYTES:
                break
            tokens = tokens or count(messages[0])
            tokens += count(text)
            if tokens > limit // SHARE:
                break
        taken += 1
    return taken
