"""The parts of a schema, with where its references lead; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

_BY_NAME = frozenset(
    {
        "$defs",
        "definitions",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)
"""Keywords with schemas by names."""

_OF_THE_SAME = (
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "disallow",
    "else",
    "extends",
    "if",
    "not",
    "oneOf",
    "then",
    "type",
)
"""Keywords whose schemas look at the same value again, and at no part of it."""

_OF_PARTS = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
)
_DEFINITIONS = ("$defs", "definitions")


def specification_of(schema: Mapping[str, Any]) -> Specification[Any]:
    """That of its draft, 2020-12 without one."""
    try:
        return specification_with(str(schema["$schema"]))
    except (KeyError, UnknownDialect):
        return DRAFT202012


def address_inside(schema: Mapping[str, Any]) -> str | None:
    """The first address of a part of ``schema``, against which that one's references count."""
    root = specification_of(schema).create_resource(schema)
    waiting = list(root.subresources())
    while waiting:
        part = waiting.pop()
        if (address := part.id()) is not None:
            return address
        waiting += part.subresources()
    return None


def resolver_within(schema: Mapping[str, Any]) -> Any:
    """Looks references up in ``schema``, and nowhere else."""
    # A schema may refer to itself by its own address.
    address = str(schema.get("$id", ""))
    resource = specification_of(schema).create_resource(schema)
    # Its anchors are looked for once; a registry that had not would look at each reference again.
    registry: Registry[Any] = Registry().with_resource(address, resource).crawl()
    return registry.resolver(address)


class Reachable:
    """A schema and all that belongs to it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._resolver = resolver_within(schema)

    def schemas(self) -> Iterator[dict[str, Any]]:
        """The schema, the schemas in it, and those that its references lead to.

        Raises:
            LookupError: if a reference leads to nothing in it.
        """
        # By their addresses in memory: the schema holds them all.
        waiting, seen = [self._root], set[int]()
        while waiting:
            schema = waiting.pop()
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            waiting += reversed(
                [*self._of_the_same(schema), *_within(schema, (*_OF_PARTS, *_DEFINITIONS))]
            )

    def leads_in_a_circle(self) -> dict[str, Any] | None:
        """A schema that a value would be checked against again and again, if there is one."""
        done, begun = set[int](), set[int]()
        for start in self.schemas():
            stack = [(start, False)]
            while stack:
                schema, left = stack.pop()
                if left:
                    begun.discard(id(schema))
                    done.add(id(schema))
                elif id(schema) in begun:
                    return schema
                elif id(schema) not in done:
                    begun.add(id(schema))
                    stack.append((schema, True))
                    stack += [(one, False) for one in self._of_the_same(schema)]
        return None

    def _of_the_same(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        inside = list(_within(schema, _OF_THE_SAME))
        reference = schema.get("$ref")
        if isinstance(reference, str):
            try:
                target = self._resolver.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError):
                raise LookupError(reference) from None
            if isinstance(target, dict):
                inside.append(target)
            elif not isinstance(target, bool):
                raise LookupError(reference)
        return inside


def _within(schema: dict[str, Any], keywords: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for keyword in keywords:
        value = schema.get(keyword)
        if isinstance(value, dict):
            parts = list(value.values()) if keyword in _BY_NAME else [value]
        else:
            parts = value if isinstance(value, list) else []
        yield from (part for part in parts if isinstance(part, dict))
