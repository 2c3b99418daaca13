"""What a statement's result shows of the views that it made: those that a variable holds, each at a
place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.history.content import Content, NodePart, TextPart
from runtime.interpreter.namespace import HELD_ITEMS

MOST_PLACES = 400
"""Places in one result.

More views that are held stand in the tail, where they give way without a mark for each.
"""


def result_content(text: str, made: Sequence[str], is_kept: Callable[[str], bool]) -> Content:
    """The result's ``text``, then the places of the views ``made`` that are kept: held by a
    variable, or pinned.

    A loop that reuses a name leaves one line for all the others: a place for each would be a trail
    of marks for ever.
    """
    kept = [obj_id for obj_id in made if is_kept(obj_id)]
    lines: list[str] = []
    if gone := len(made) - len(kept):
        lines.append(
            f"[{_views(gone)} made here that no variable holds; of a list, {HELD_ITEMS} items"
            " count]"
        )
    if (further := len(kept) - MOST_PLACES) > 0:
        lines.append(f"[{_views(further)} made here, and shown further down]")
    parts = [TextPart(text=line) for line in lines]
    return (
        TextPart(text=text),
        *parts,
        *(NodePart(obj_id=obj_id) for obj_id in kept[-MOST_PLACES:]),
    )


def _views(number: int) -> str:
    return f"{number:,} {'view' if number == 1 else 'views'}"
