"""``{field}`` in the values of a job that stands for many: what is put in its place.

A value that is a field and nothing else becomes what the field holds, be it a number, a list or a
mapping. Within a longer text a field is written out. ``{{field}}`` is the text ``{field}``, and
braces around anything but a field's name stay as they are, so that JSON and code need no care.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from runtime.base.quoted import shown
from runtime.jobsfile.problems import Location, nearest
from runtime.jobsfile.written.wrong import WRONG_NUMBER

NAME = r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
_FIELD = re.compile(r"\{\{(?P<kept>" + NAME + r")\}\}|\{(?P<name>" + NAME + r")\}")
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MISSING = object()

TEXTS = frozenset({"id", "goal"})
"""Keys of a job whose values are texts, also where a field alone makes them, and holds a number."""


class Template:
    """The written form of a job, into which the fields of one item after the other are put."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job

    def filled(
        self, fields: Mapping[str, Any], note: Callable[[Location, str], None]
    ) -> dict[str, Any]:
        """The job of an item. ``note`` hears of fields that the item does not have."""
        return {
            key: _filled(value, fields, (key,), note, text=key in TEXTS, name=key == "id")
            for key, value in self._job.items()
        }


def _filled(
    value: Any,
    fields: Mapping[str, Any],
    at: Location,
    note: Callable[[Location, str], None],
    *,
    text: bool = False,
    name: bool = False,
) -> Any:
    """``value`` with its fields put in: as a ``text``, as a part of a ``name``."""
    if isinstance(value, dict):
        return {key: _filled(item, fields, (*at, key), note) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, fields, (*at, index), note) for index, item in enumerate(value)]
    if not isinstance(value, str) or "{" not in value:
        return value

    def held(field: str) -> Any:
        content = value_of(fields, field)
        if content is _MISSING:
            close = nearest(field, fields)
            hint = f"; did you mean {close!r}?" if close else f"; there are {', '.join(fields)}."
            note(at, f"no field {field!r}{hint} {{{{{field}}}}} is the text {{{field}}}")
            return ""
        return content

    def written(match: re.Match[str]) -> str:
        if match["kept"]:
            return f"{{{match['kept']}}}"
        told = _text(held(match["name"]))
        # An id has few kinds of characters, and a field may hold any.
        return _NO_NAME.sub("-", told) if name else told

    alone = _FIELD.fullmatch(value)
    if alone is not None and alone["name"] and not text:
        return held(alone["name"])
    return _FIELD.sub(written, value)


def value_of(fields: Mapping[str, Any], field: str) -> Any:
    """What a field holds; of ``a.b``, what ``b`` does in ``a``."""
    # A column of a CSV file may be called ``a.b`` itself.
    if field in fields:
        return fields[field]
    value: Any = fields
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_expected(kind: str, value: Any) -> Any:
    """``value`` in the form that a key expects which refused it with an error of that ``kind``: the
    fields of a CSV file are texts, and those of an item may be numbers where a text stands.

    Returns ``value`` where there is none.
    """
    if kind == "string_type" and isinstance(value, int | float):
        return json.dumps(value)
    if kind in _NUMBERS and isinstance(value, str):
        try:
            read = json.loads(value)
        # Also what is nested deeper than the reader goes.
        except (ValueError, RecursionError):
            return value
        return read if isinstance(read, int | float) else value
    return value


_NUMBERS = frozenset({"int_type", "float_type", "bool_type", WRONG_NUMBER})
"""Errors of keys that expect a number, or take one beside a text."""


def unfit(text: str) -> str | None:
    """Why ``text`` may not be a field's name, if it may not."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", text):
        return None
    return f"expected a field's name (letters, digits, '_' and '-'), got {shown(text)}"
