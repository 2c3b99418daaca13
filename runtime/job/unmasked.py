"""Comparing what a job has now with a record in which a worker masked the values that it alone
knows.

A statement may put such a value together; the workflow has no environment to know it by, and the
archive has a mark in its place. What differs from its record by marks alone is the same, as far as
anybody can tell without the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.base.redaction.marks import MARK


def as_recorded(recorded: Any, now: Any) -> Any:
    """``now`` with each text as the record has it where that differs by its marks alone; of JSON's
    kinds, compared place by place.
    """
    match recorded, now:
        case str(), str():
            return recorded if differs_by_marks(recorded, now) else now
        case Mapping(), Mapping():
            return {name: as_recorded(recorded.get(name), value) for name, value in now.items()}
        case (list() | tuple(), list() | tuple()):
            # Cut or filled up: a list may have grown or shrunk since it was recorded.
            beside = [*recorded[: len(now)], *[None] * (len(now) - len(recorded))]
            return type(now)(as_recorded(old, new) for old, new in zip(beside, now, strict=True))
        case _:
            return now


def differs_by_marks(recorded: str, now: str) -> bool:
    """Whether ``now`` is the record's text with something unmasked in place of some of its marks:
    equal marks, equal texts.

    Of marks with nothing between them it is not known where one value ends: that is a difference.
    """
    stands_for: dict[str, str] = {}
    at = done = 0
    for mark in MARK.finditer(recorded):
        piece = recorded[done : mark.start()]
        if not now.startswith(piece, at):
            return False
        at, done = at + len(piece), mark.end()
        if now.startswith(mark[0], at):
            at += len(mark[0])
            continue
        known = stands_for.get(mark[0])
        if known is None:
            following = MARK.search(recorded, done)
            piece = recorded[done : following.start() if following else None]
            end = (
                # From one character on: what a mark stands for is never nothing.
                (now.find(piece, at + 1) if following else len(now) - len(piece))
                if piece
                else len(now)
            )
            known = now[at : max(end, at)]
            # A value that holds marks itself, or none, cannot be told from a difference.
            if not known or MARK.search(known):
                return False
            stands_for[mark[0]] = known
        if not now.startswith(known, at):
            return False
        at += len(known)
    return done > 0 and now[at:] == recorded[done:]
