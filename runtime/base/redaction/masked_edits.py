"""Editing values of which a person sees masks in place of secrets: what was left as it was stays
what it is, and no mask is taken for a value. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.base.errors import InputError
from runtime.base.redaction.marks import MARK

Place = tuple[str | int, ...]
"""The keys and indexes that lead to a value within another."""


def left_masked(shown: Any, edited: Any) -> tuple[tuple[Place, ...], Any]:
    """The places of ``edited`` that are as they were ``shown`` and hold a mask, and ``edited``
    with nothing there.

    Raises:
        InputError: if a mask stands in what was changed.
    """
    places: list[Place] = []

    def walk(before: Any, after: Any, at: Place) -> Any:
        if not _has_mask(after):
            return after
        # Not at the top: that nothing was edited at all the caller has found out.
        if after == before and at:
            places.append(at)
            # Of a call's arguments its worker takes a list and a mapping alone.
            return type(after)() if isinstance(after, list | dict) else None
        if isinstance(after, dict) and isinstance(before, dict):
            for key in after:
                if MARK.search(key):
                    raise InputError(_refused(key, at))
            return {key: walk(before.get(key), value, (*at, key)) for key, value in after.items()}
        if isinstance(after, list) and isinstance(before, list):
            # A list that the user has made longer has nothing to be compared with at its end.
            olds = [*before, *[None] * len(after)]
            return [
                walk(old, new, (*at, number))
                for number, (old, new) in enumerate(zip(olds, after, strict=False))
            ]
        raise InputError(_refused(_mask(after), at))

    sent = walk(shown, edited, ())
    return tuple(places), sent


def put_back(edited: Any, places: Sequence[Place], own: Any) -> Any:
    """``edited`` with what ``own`` has at the ``places``."""
    for place in places:
        edited = _with(edited, place, own)
    return edited


def _with(edited: Any, place: Place, own: Any) -> Any:
    if not place:
        return own
    key, *rest = place
    value = _with(edited[key], tuple(rest), own[key])
    if isinstance(edited, dict):
        return {**edited, key: value}
    assert isinstance(key, int)
    return [*edited[:key], value, *edited[key + 1 :]]


def _has_mask(value: Any) -> bool:
    return bool(_mask(value))


def _mask(value: Any) -> str:
    """The first mask in a value; empty if there is none."""
    match value:
        case str():
            mask = MARK.search(value)
            return mask[0] if mask else ""
        case dict():
            return next(filter(None, map(_mask, [*value, *value.values()])), "")
        case list():
            return next(filter(None, map(_mask, value)), "")
        case _:
            return ""


def _refused(text: str, at: Place) -> str:
    place = "".join(f"[{key!r}]" for key in at)
    mask = MARK.search(text)
    return (
        f"{place or 'the arguments'}: {mask[0] if mask else text} stands for a secret that is not"
        " shown; leave the value as it was, or write another one without it"
    )
