"""Masking what a statement computes, where it leaves the interpreter.

Pure: forms of keys alone, and no key for the marks.

A secret's value can reach a statement only through a file, a tool or a message, which mask it; put
together there from its parts it is known by its form. What has no form, or is printed in two
pieces, is not found here; a whole value is masked once more where a prompt is archived and sent, by
the worker that knows the environment's.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, TypeVar, cast

from runtime.base.redaction.looking import texts_of
from runtime.base.redaction.marks import keyless_mark
from runtime.base.redaction.shapes import has_shape, mask_shapes

T = TypeVar("T")


def without_keys(value: T) -> T:
    """``value`` with what has the form of a key masked: in texts, bytes and paths, at any depth of
    lists, tuples and mappings.

    Without keys it is not copied.
    """
    return cast(T, _masked(value)) if has_shape(texts_of(value, _encoded)) else value


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _masked(value: Any) -> Any:
    match value:
        case str():
            data = _encoded(value)
            masked = mask_shapes(data, keyless_mark)
            return value if masked is data else masked.decode("utf-8", "surrogatepass")
        case bytes():
            return mask_shapes(value, keyless_mark)
        case PurePosixPath():
            return PurePosixPath(_masked(str(value)))
        case list():
            return [_masked(item) for item in value]
        # A named tuple is made from its fields, and not from one iterable.
        case tuple() if type(value) is tuple:
            return tuple(_masked(item) for item in value)
        case dict():
            return {_masked(key): _masked(item) for key, item in value.items()}
        case _:
            return value
