"""The shapes of what ``--json`` prints: what a value's shape is, and where a value does not have
the one that is pinned.

A shape is written as JSON: a scalar by its type's name, ``any`` for what is the user's or a
provider's, ``x|y`` for either; a list by the shape of its items; an object by its keys, those that
may be missing with a ``?``, and ``*`` for keys that are names. An object of the one key ``or null``
is what stands there, or null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_NAMES = {str: "text", bool: "bool", int: "int", float: "number", type(None): "null"}
ANY_KEY = "*"
OR_NULL = "or null"


def misfits(shape: Any, value: Any, place: str = "") -> Iterator[str]:
    """Where ``value`` has another shape, a line each."""
    if isinstance(shape, str):
        names = shape.split("|")
        name = _NAMES.get(type(value), "object" if isinstance(value, dict) else "list")
        if "any" not in names and name not in names and not (name == "int" and "number" in names):
            yield f"{place or 'the document'} is {name}, not {shape}"
        return
    inner, nullable = _inner(shape)
    if value is None and nullable:
        return
    if isinstance(inner, dict):
        if isinstance(value, dict):
            yield from _keys(inner, value, place)
        else:
            yield f"{place or 'the document'} is no object"
    elif not isinstance(value, list):
        yield f"{place or 'the document'} is no list"
    else:
        for number, item in enumerate(value):
            yield from misfits(inner[0], item, f"{place}[{number}]")


def _inner(shape: Any) -> tuple[Any, bool]:
    """An object's or list's own shape, and whether null may stand there."""
    return (
        (shape[OR_NULL], True) if isinstance(shape, dict) and OR_NULL in shape else (shape, False)
    )


def _keys(shape: dict[str, Any], value: dict[str, Any], place: str) -> Iterator[str]:
    known = {key.removesuffix("?"): key for key in shape}
    for key, item in value.items():
        if key not in known and ANY_KEY not in known:
            yield f"{place}.{key} is not pinned"
        else:
            yield from misfits(shape[known.get(key, ANY_KEY)], item, f"{place}.{key}")
    for key, written in known.items():
        if key == written != ANY_KEY and key not in value:
            yield f"{place}.{key} is missing"


def unseen(shape: Any, values: list[Any], place: str = "") -> Iterator[str]:
    """The keys of a shape that none of the values has, but those that may be missing."""
    held = [value for value in values if value is not None]
    if isinstance(shape, str) or not held:
        return
    inner, _ = _inner(shape)
    if isinstance(inner, list):
        yield from unseen(inner[0], [item for value in held for item in value], place + "[]")
        return
    for written, of in inner.items():
        key = written.removesuffix("?")
        found = [item for value in held for name, item in value.items() if key in (name, ANY_KEY)]
        if found:
            yield from unseen(of, found, f"{place}.{key}")
        elif key == written != ANY_KEY:
            yield f"{place}.{key}"
