"""Notes: text that the model keeps for itself.

A note is pinned from the start, so it outlives every condensation, and never cut.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.context.outcomes import Refused
from runtime.context.sources import ALL_TOKENS
from runtime.context.states import NoteState, RenderedView

NOTE_TOKENS = 500
"""A note's budget unless the model says otherwise."""

NOTE_CHARS = 100_000
"""The bound of a note whose budget is ``All``: its text stands in every checkpoint and in the
archive's records of prompts.
"""

PINNED = "note"
"""The reason for which a note is pinned."""


def written(
    call: str, state: NoteState, text: str, tokens: int, count: Callable[[str], int]
) -> NoteState:
    """``state`` with another text or budget.

    Raises:
        Refused: with a ``ValueError``, if the text is longer than the budget: half a note would be
            no note.
    """
    used = count(text)
    if tokens != ALL_TOKENS and used > tokens:
        raise Refused(
            ValueError,
            f"{call}: the text has {used:,} tokens, and the note's budget is {tokens:,}; shorten it"
            " or give it more tokens",
        )
    if len(text) > NOTE_CHARS:
        raise Refused(
            ValueError, f"{call}: a note has at most {NOTE_CHARS:,} characters, not {len(text):,}"
        )
    rendering = RenderedView(text=text, tokens=used, budget=tokens)
    return state.evolve(tokens=tokens, rendering=rendering)
