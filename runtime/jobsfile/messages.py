"""What a jobs file's validation errors say: pydantic's findings in the words of the format."""

from __future__ import annotations

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from runtime.base.quoted import shown
from runtime.base.redaction.computed import without_keys
from runtime.jobsfile.problems import Location, nearest, unknown_key
from runtime.jobsfile.written.budgets import WrittenBudget
from runtime.jobsfile.written.condensers import WrittenCondenser
from runtime.jobsfile.written.file import WrittenHeader
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.models import WrittenModel
from runtime.jobsfile.written.patterns import RULES
from runtime.jobsfile.written.sections import WrittenSections
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.workspace import WrittenWorkspace
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
_PLACES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("in 'budget'", WrittenBudget),
    ("in a job or in 'defaults'", WrittenSettings),
    ("in a job", WrittenJob),
    ("at the top of the file", WrittenHeader),
    ("in 'condenser'", WrittenCondenser),
    ("in 'sections'", WrittenSections),
)


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
        return f"expected {text.format(shown(value))} {context[key]:g}, got {got}"
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
    model: type[BaseModel] = root
    if way[-1:] == ["budget"]:
        model = WrittenBudget
    elif way[-1:] == ["sections"]:
        model = WrittenSections
    elif way[-1:] == ["model"]:
        model = WrittenModel
    elif "condenser" in way[-2:]:
        model = WrittenCondenser
    elif way[-1:] == ["workspace"]:
        model = WrittenWorkspace
    elif way[:1] == ["defaults"]:
        model = WrittenSettings
    # By the words of the file: ``from`` is the field ``from_`` here.
    fields = (field.alias or name for name, field in model.model_fields.items())
    # Jobs are checked one by one, so the header's model does not have the key.
    known = [*fields, *(["jobs"] if model is WrittenHeader else [])]
    place = next((place for place, other in _PLACES if name in other.model_fields), "")
    return unknown_key(name, known, elsewhere=f"it belongs {place}" if place else "")
