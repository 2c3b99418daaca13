"""What a jobs file's validation errors say: pydantic's findings in the words of the format."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from runtime.base.quoted import shown
from runtime.base.redaction.computed import without_keys
from runtime.jobsfile.problems import Location, nearest, unknown_key
from runtime.jobsfile.written.budgets import WrittenBatchBudget
from runtime.jobsfile.written.file import WrittenHeader
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.patterns import RULES
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.wrong import WRONG, WRONG_NUMBER

_EXPECTED = {
    "string_type": "a text",
    "string_unicode": "Unicode text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("gt", "a number above"),
    "greater_than_equal": ("ge", "a number of at least"),
    "less_than": ("lt", "a number below"),
    "less_than_equal": ("le", "a number of at most"),
    "too_short": ("min_length", "{} no shorter than"),
    "too_long": ("max_length", "{} no longer than"),
    "string_too_short": ("min_length", "a text no shorter than"),
    "string_too_long": ("max_length", "a text no longer than"),
}
_LEVELS = (WrittenHeader, WrittenSettings, WrittenJob)
"""The mappings that hold most of the others: of these a key easily stands in the wrong one."""

_PARTS = ("budget", "condenser", "sections")
"""Keys of a level whose own keys are easily written beside them."""


def describe(error: ErrorDetails, root: type[BaseModel]) -> str:
    """The text of one finding of ``root``'s validation: what was expected, and what was there."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind in (WRONG, WRONG_NUMBER):
        return str(context["text"])
    if kind == "missing":
        return "required key is missing"
    if kind == "extra_forbidden":
        return _unknown(error["loc"], root)
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {shown(value)}"
    if kind in _BOUNDS:
        key, text = _BOUNDS[kind]
        got = f"{len(value)} items" if isinstance(value, list | dict) else shown(value)
        bound = context[key]
        told = str(bound) if isinstance(bound, int) else f"{bound:.15g}"
        return f"expected {text.format(shown(value))} {told}, got {got}"
    if kind == "literal_error":
        return f"expected {context['expected']}, got {shown(value)}"
    if kind == "string_pattern_mismatch":
        # A key may stand where the name of its variable is expected.
        return f"expected {RULES[context['pattern']]}, got {shown(without_keys(value))}"
    return f"{error['msg']}, got {shown(value)}"


def without_consequences(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """``errors`` without the missing keys that are there under a misspelt name: the unknown key
    says so.
    """
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]

    def misspelt(location: Location) -> bool:
        beside = [str(other[-1]) for other in unknown if other[:-1] == location[:-1]]
        return any(nearest(name, [str(location[-1])]) for name in beside)

    return [
        error for error in errors if not (error["type"] == "missing" and misspelt(error["loc"]))
    ]


def _unknown(location: Location, root: type[BaseModel]) -> str:
    """The hint for an unknown key at the end of ``location``."""
    *way, key = location
    name = str(key)
    mappings = _mappings(way, root)
    known = _keys(mappings[-1][1])
    place = _place(name, mappings)
    # Far inside, a key is a misspelt one rather than one of elsewhere.
    if mappings[-1][1] not in _LEVELS and nearest(name, known) is not None:
        place = ""
    return unknown_key(name, known, elsewhere=f"it belongs {place}" if place else "")


def _place(name: str, mappings: list[tuple[str, type[BaseModel]]]) -> str:
    """Where a key belongs that the innermost of ``mappings`` does not have: in a part of it, or in
    one that it is part of; nothing if in none of these.
    """
    *above, (_, here) = mappings
    # What a command was given by itself is part of no file.
    if mappings[0][1] not in _LEVELS:
        return ""
    if part := _part(name, here):
        return f"in {part!r}"
    for key, model in reversed(above):
        if model not in _LEVELS and name in _keys(model):
            return f"in {key!r}"
    if here in _LEVELS or any(model in _LEVELS[1:] for _, model in above):
        if name in _keys(WrittenSettings):
            return "in a job or in 'defaults'"
        if name in _keys(WrittenJob):
            return "in a job"
    if name in _keys(WrittenHeader):
        return "at the top of the file"
    # The batch's budget has some of the keys of a job's.
    if here in (WrittenHeader, WrittenBatchBudget) and (part := _part(name, WrittenSettings)):
        return f"in {part!r} of a job or of 'defaults'"
    return ""


def _part(name: str, model: type[BaseModel]) -> str:
    """The key of ``model`` whose mapping has the key ``name``, if any."""
    for part in _PARTS:
        kind = _below(model, part)
        # Of several condensers each is one.
        kind = kind if _is_model(kind) else _below(kind, 0)
        if _is_model(kind) and name in _keys(kind):
            return part
    return ""


def _mappings(way: Iterable[str | int], root: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    """The mappings on the way from ``root``, which is the first one, with the keys by which one
    comes to them.
    """
    passed, key, kind = [("", root)], "", root
    for part in way:
        key = part if isinstance(part, str) else key
        kind = _below(kind, part)
        if _is_model(kind):
            passed.append((key, kind))
    return passed


def _below(kind: Any, part: str | int) -> Any:
    """The type of what stands at ``part`` in a value of the type ``kind``."""
    if _is_model(kind):
        fields = kind.model_fields.items()
        kinds = (field.annotation for name, field in fields if part in (name, field.alias))
        return _bare(next(kinds, None))
    # Of a list, or of a mapping whose keys are free.
    return _bare(get_args(kind)[-1]) if get_args(kind) else None


def _bare(kind: Any) -> Any:
    """A type without what is said of it, and without the None of a key that is left out."""
    wrapped = get_origin(kind) in (Annotated, Union, UnionType)
    return _bare(get_args(kind)[0]) if wrapped else kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _keys(model: type[BaseModel]) -> list[str]:
    # By the words of the file: ``from`` is the field ``from_`` here.
    fields = [field.alias or name for name, field in model.model_fields.items()]
    # Jobs are checked one by one, so the header's model does not have the key.
    return [*fields, *(["jobs"] if model is WrittenHeader else [])]
