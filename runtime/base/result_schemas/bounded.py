"""Checks a value by a schema, in a bounded amount of counted work.

jsonschema's keywords do the checking. What of it could take for ever is done otherwise: patterns
by RE2, unique items by their texts. All of it is counted, the same in each process, and nothing is
looked up outside the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

import attrs
from jsonschema import FormatChecker, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry

from runtime.base.result_schemas.matching import encoded, matcher
from runtime.base.result_schemas.reachable import resolver_within

MOST_WORK = 700_000
"""Units of work of one check, of one to two microseconds each; a statement may compute a second.

Rows of five nullable fields, as many as ``finish`` takes (512 KiB), need 400,000 to 670,000.
"""

DRAFT_WORK = 200_000
"""Units of a check by any schema, as of a schema by its draft, of four microseconds each."""

MOST_DEPTH = 200
"""Keywords inside of each other: some 600 of the 1,000 calls that Python allows."""

ERROR_WORK = 3
"""Of an error at each keyword that hands it on; of those in an ``anyOf`` most mean nothing."""

KEPT_WORK = 20
"""Of an error that may be the one that is told."""

ITEM_WORK = 3
CHARACTERS_A_UNIT = 50
"""Characters of an error's text, or of an item's, that count as one unit."""

COMPARED_A_UNIT = 2
MOST_PARTS = 10_000
"""Validators that are kept while a check lasts."""

STEPS_FOR_NOTHING = 2
"""Of a reference; each more is a unit."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooMuchWork(Exception):
    """A check would take more work than it may."""


class TooDeep(Exception):
    """A check would go deeper than ``MOST_DEPTH``."""


class _Work:
    """What is left of one check's, and what is known of the schema while that lasts: of its parts
    by their addresses in memory, which it holds.
    """

    def __init__(self, most: int) -> None:
        self.left = most
        self.depth = 0
        self._sizes: dict[int, int] = {}
        self._parts: dict[int, Any] = {}
        self._targets: dict[str, Any] = {}

    def done(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooMuchWork

    def size(self, keyword: Any) -> int:
        """How many values a keyword's value has, which lives as long as the schema."""
        if not isinstance(keyword, dict | list):
            return 0
        if (size := self._sizes.get(id(keyword))) is None:
            parts = keyword.values() if isinstance(keyword, dict) else keyword
            size = self._sizes[id(keyword)] = len(keyword) + sum(map(self.size, parts))
        return size

    def part(self, validator: Any, schema: Any) -> Any:
        """The validator of a part of the schema: to make one takes longer than most checks."""
        self.done(1)
        if (made := self._parts.get(id(schema))) is None:
            made = attrs.evolve(validator, schema=schema)
            # Of a draft's keyword that makes schemas as it checks there are more and more.
            if len(self._parts) < MOST_PARTS:
                self._parts[id(schema)] = made
        return made

    def target(self, validator: Any, reference: str) -> Any:
        """Where a reference leads: from everywhere, since no part has an address of its own."""
        if reference not in self._targets:
            self._targets[reference] = validator._resolver.lookup(reference).contents
        return self._targets[reference]


_WORK: ContextVar[_Work] = ContextVar("work")


def worst_error(schema: Mapping[str, Any], value: Any) -> ValidationError | None:
    """That which explains most of what is wrong with ``value``, as far as it was looked at.

    Raises:
        TooMuchWork: if nothing is known to be wrong, and not all was looked at.
        TooDeep: if it is nested too deep to be checked.
    """
    made = _within(validator_for(schema, default=Draft202012Validator))
    return _worst(made(schema, _resolver=resolver_within(schema)), value, MOST_WORK)


def worst_error_by_foreign(schema: Mapping[str, Any], value: Any) -> ValidationError | None:
    """As ``worst_error``, by a schema of which nobody has looked whether it can be checked: it may
    have addresses inside of it, and refer to drafts.

    Raises:
        Exception: whatever jsonschema stumbles over, too.
    """
    made = _counting(validator_for(schema, default=Draft202012Validator))
    return _worst(made(schema, registry=Registry()), value, DRAFT_WORK)


def _worst(validator: Any, value: Any, most: int) -> ValidationError | None:
    seen: list[ValidationError] = []
    work = _Work(most)
    with_work = _WORK.set(work)
    try:
        for error in validator.iter_errors(value):
            seen.append(error)
            work.done(KEPT_WORK)
    except TooMuchWork:
        if not seen:
            raise
    finally:
        _WORK.reset(with_work)
    worst: ValidationError | None = best_match(seen)
    return worst


def first_error_of(schema: Mapping[str, Any]) -> ValidationError | None:
    """What is wrong with ``schema`` by its draft, first.

    Raises:
        TooMuchWork: if it is too large.
        TooDeep: if it is nested too deep.
    """
    draft = validator_for(schema, default=Draft202012Validator)
    formats: FormatChecker = draft.FORMAT_CHECKER
    with_work = _WORK.set(_Work(DRAFT_WORK))
    try:
        made = _counting(draft)(draft.META_SCHEMA, format_checker=formats, registry=Registry())
        return next(made.iter_errors(schema), None)
    finally:
        _WORK.reset(with_work)


@cache
def _within(draft: Any) -> Any:
    """The validator of a draft, bounded, for schemas with no addresses inside of them."""
    made = _made(draft)
    # jsonschema would go on with its own validator where a schema names its draft.
    made.evolve = _part
    made._validate_reference = _referred
    descend = made.descend

    def descended(
        self: Any, instance: Any, schema: Any, path: Any = None, schema_path: Any = None
    ) -> Iterator[ValidationError]:
        # It would look for an address in each part.
        errors: Iterator[ValidationError] = descend(
            self, instance, schema, path, schema_path, self._resolver
        )
        return errors

    made.descend = descended
    return made


@cache
def _counting(draft: Any) -> Any:
    """The validator of a draft, bounded, for any schema."""
    made = _made(draft)
    made.evolve = _evolved
    return made


def _made(draft: Any) -> Any:
    keywords = {
        name: _counted(name, _OWN.get(name, keyword)) for name, keyword in draft.VALIDATORS.items()
    }
    return extend(draft, keywords)  # type: ignore[no-untyped-call]


def _evolved(self: Any, **changes: Any) -> Any:
    _WORK.get().done(1)
    return attrs.evolve(self, **changes)


def _part(self: Any, schema: Any, **_: Any) -> Any:
    return _WORK.get().part(self, schema)


def _referred(self: Any, ref: str, instance: Any) -> Iterator[ValidationError]:
    errors: Iterator[ValidationError] = self.descend(instance, _WORK.get().target(self, ref))
    return errors


def _counted(name: str, keyword: Keyword) -> Keyword:
    compares = name in {"enum", "const", "required", "dependentRequired", "dependencies"}

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        work = _WORK.get()
        if compares:
            units = 1 + work.size(value) // COMPARED_A_UNIT
        elif name == "$ref":
            units = max(1, str(value).count("/") - STEPS_FOR_NOTHING)
        else:
            units = 1 + (len(value) // COMPARED_A_UNIT if isinstance(value, dict | list) else 0)
        work.done(units)
        if work.depth == MOST_DEPTH:
            raise TooDeep
        work.depth += 1
        try:
            for error in keyword(validator, value, instance, schema) or ():
                work.done(ERROR_WORK + len(error.message) // CHARACTERS_A_UNIT)
                yield error
        finally:
            work.depth -= 1

    return checked


def _matches(pattern: str, text: str) -> bool:
    made, data = matcher(pattern), encoded(text)
    _WORK.get().done(1 + made.work(data))
    return made.pattern.search(data) is not None


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    # In the value's order: jsonschema's own differs from process to process.
    names = [
        name
        for name in instance
        if name not in known and not any(_matches(pattern, name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in names:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and names:
        told = ", ".join(repr(name) for name in sorted(names))
        were = "was" if len(names) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({told} {were} unexpected)")


def _unique_items(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if not wanted or not isinstance(instance, list):
        return
    seen = set[str]()
    for item in instance:
        text = json.dumps(_canonical(item), sort_keys=True)
        _WORK.get().done(ITEM_WORK + len(text) // CHARACTERS_A_UNIT)
        if text in seen:
            yield ValidationError(f"{instance!r} has non-unique elements")
            return
        seen.add(text)


def _canonical(value: Any) -> Any:
    """``value`` so that what JSON Schema takes for equal has one text: 1 is 1.0, and not true."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _canonical(part) for name, part in value.items()}
        case list():
            return [_canonical(part) for part in value]
        case _:
            return value


_OWN: Mapping[str, Keyword] = {
    "additionalProperties": _additional_properties,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
