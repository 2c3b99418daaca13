"""Python's words for the tools of an MCP server: a method's line for the type checker, made from
JSON Schemas.

What a schema says that Python's types do not is left to the server, which checks the arguments too:
the type that is written is then a wider one, ``Any`` at last.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

_PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_MAX_STUB = 2_000
_MAX_DEPTH = 5
_MAX_LITERALS = 20
_MAX_LITERAL = 60
_MAX_DEFAULT = 40
_OTHER = re.compile(r"\W", re.ASCII)

Schema = Mapping[str, Any]


def method_name(tool: str, taken: frozenset[str]) -> str:
    """An identifier for a tool, other than those ``taken``: ``read-file`` is ``read_file``."""
    name = _OTHER.sub("_", tool) or "tool"
    if name[0].isdigit() or name.startswith("__") or keyword.iskeyword(name):
        name = f"tool_{name}"
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def method_stub(name: str, arguments: Schema, result: Schema | None) -> str:
    """``def name(self, *, ...) -> T: ...``; every argument is given by its name.

    The first parameter has another name where the tool has an argument of that one.
    """
    returns = "str" if result is None else _Types(result).of(result)
    parameters = _parameters(arguments)
    stub = f"def {name}({', '.join(parameters)}) -> {returns}: ..."
    if len(stub) <= _MAX_STUB:
        return stub
    # The signature is too long to be told: the server checks arguments anyway.
    returns = returns if len(returns) < _MAX_STUB // 2 else "Any"
    return f"def {name}({parameters[0]}, **arguments: Any) -> {returns}: ..."


def _parameters(schema: Schema) -> list[str]:
    properties = schema.get("properties")
    required = schema.get("required")
    listed = required if isinstance(required, list) else []
    needed = dict.fromkeys(name for name in listed if isinstance(name, str))
    # A name that is required may stand nowhere else.
    known = properties if isinstance(properties, Mapping) else {}
    names = {**known, **{name: True for name in needed if name not in known}}
    parts, types = [_free("self", names)], _Types(schema)
    for name, value in names.items():
        # Another is given as **{"from": ...}.
        if _is_name(name):
            text = f"{name}: {types.of(value)}"
            parts.append(text if name in needed else f"{text} = {_default(value)}")
    if len(parts) > 1:
        parts.insert(1, "*")
    if not isinstance(properties, Mapping) or _takes_more(schema) or not all(map(_is_name, names)):
        parts.append(f"**{_free('others', names)}: Any")
    return parts


def _is_name(name: str) -> bool:
    """Whether a parameter may be called so."""
    plain = name.isidentifier() and name.isascii() and name != "__debug__"
    return plain and not keyword.iskeyword(name)


def _free(name: str, names: Collection[str]) -> str:
    """A parameter's name that is none of ``names``, which are the tool's own."""
    while name in names:
        name += "_"
    return name


def _takes_more(schema: Schema) -> bool:
    """Whether a schema says that there may be arguments that it does not name."""
    more = schema.get("additionalProperties")
    return more is True or isinstance(more, Mapping) or bool(schema.get("patternProperties"))


def _default(schema: Any) -> str:
    """The default as it is written where that is a short scalar, else ``...``."""
    value = schema.get("default") if isinstance(schema, Mapping) else None
    # Infinity and NaN have no literal.
    if isinstance(value, float) and not math.isfinite(value):
        return "..."
    if not isinstance(value, bool | int | float | str):
        return "..."
    text = ascii(value)
    return text if len(text) <= _MAX_DEFAULT and text.isprintable() else "..."


class _Types:
    """Python's types for the schemas within ``root``.

    A type is made once for each schema and depth: one may refer to itself by any number of its
    members, and each of those again to it.
    """

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._made: dict[tuple[int, int], str] = {}

    def of(self, schema: Any, depth: int = 0) -> str:
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return "Any"
        # Each is the root's, which is kept: no other has its number.
        key = id(schema), depth
        if key not in self._made:
            # No part of a stub may be longer, and what is too long in all is not told.
            self._made[key] = self._new(schema, depth)[: _MAX_STUB + 1]
        return self._made[key]

    def _new(self, schema: Schema, depth: int) -> str:
        if isinstance(ref := schema.get("$ref"), str):
            return self.of(_referred(ref, self._root), depth + 1)
        if isinstance(values := schema.get("enum"), list):
            return _literal(values)
        if "const" in schema:
            return _literal([schema["const"]])
        for key in ("anyOf", "oneOf"):
            if isinstance(members := schema.get(key), list):
                return _union([self.of(member, depth + 1) for member in members])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._of_kind(one, schema, depth + 1) for one in kind])
        return self._of_kind(kind, schema, depth)

    def _of_kind(self, kind: Any, schema: Schema, depth: int) -> str:
        if not isinstance(kind, str) or depth > _MAX_DEPTH:
            return "Any"
        if kind == "array":
            return f"list[{self.of(schema.get('items'), depth + 1)}]"
        return "dict[str, Any]" if kind == "object" else _PLAIN.get(kind, "Any")


def _referred(ref: str, root: Schema) -> Any:
    """What a reference within the schema stands for."""
    if not ref.startswith("#/"):
        return None
    place: Any = root
    for part in ref[2:].split("/"):
        if not isinstance(place, Mapping):
            return None
        place = place.get(part.replace("~1", "/").replace("~0", "~"))
    return place


def _literal(values: list[Any]) -> str:
    plain = all(value is None or type(value) in {bool, int, str} for value in values)
    texts = [ascii(value) for value in values]
    if plain and 0 < len(texts) <= _MAX_LITERALS and all(len(t) <= _MAX_LITERAL for t in texts):
        return f"Literal[{', '.join(texts)}]"
    return _union([_kind(value) for value in values] or ["Any"])


def _kind(value: Any) -> str:
    return type(value).__name__ if type(value) in {bool, int, float, str} else "Any"


def _union(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    if not unique or "Any" in unique:
        return "Any"
    return " | ".join(sorted(unique, key=lambda text: text == "None"))


def bounded_line(text: str | None, most: int) -> str:
    """The beginning of a foreign text on one line of printable characters."""
    line = " ".join((text or "").split())
    line = "".join(c for c in line if c.isprintable())
    return line if len(line) <= most else line[:most] + "..."


def size_of(value: Any) -> int:
    """Bytes of JSON.

    Raises:
        ValueError: if it has what JSON has not, as NaN.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return len(text.encode("utf-8", "backslashreplace"))
