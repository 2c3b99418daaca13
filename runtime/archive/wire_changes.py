"""What is different between the exact bytes of two requests, as stretches. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runtime.archive.difference import Copy, difference


@dataclass(frozen=True)
class WireChange:
    """Bytes ``removed`` at offset ``old_start`` of the old request, and ``added`` at ``new_start``
    of the new one.
    """

    old_start: int
    removed: bytes
    new_start: int
    added: bytes


def wire_changes(old: bytes, new: bytes) -> Iterator[WireChange]:
    """The stretches of ``new`` that are not as in ``old``, in order.

    What stands elsewhere in ``old`` counts as new.
    """
    at = position = changed_from = 0
    for op in difference(old, new):
        # A copy from further back is text that moved: it is told as removed there and added here.
        if isinstance(op, Copy) and op.offset >= at:
            if op.offset > at or position > changed_from:
                yield WireChange(at, old[at : op.offset], changed_from, new[changed_from:position])
            at = op.offset + op.length
            changed_from = position + op.length
        position += op.length
    if at < len(old) or position > changed_from:
        yield WireChange(at, old[at:], changed_from, new[changed_from:position])
