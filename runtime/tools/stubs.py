"""A tool's signature as one line of Python for the interpreter's type checker.

The checker knows the builtins and ``Any`` and ``Literal`` of typing (the stub file imports the
two); every other type is written as ``Any``. A result crosses as JSON, so its type is written as
what JSON makes of it: a tuple or a set as a list, bytes as text, a model or a data class as a dict
with text keys.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

_SCALARS: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    object: "object",
    type(None): "None",
    None: "None",
}
_ELEMENTS: dict[type, int] = {list: 1, set: 1, frozenset: 1, dict: 2}
_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
_MAX_DEFAULT = 40


def stub_line(name: str, signature: inspect.Signature) -> str:
    """``def name(...) -> T: ...`` for a signature whose annotations are types.

    A coroutine function is written as a plain one: its call suspends the statement, which gets the
    result.
    """
    parts: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for index, parameter in enumerate(signature.parameters.values()):
        kind = parameter.kind
        # Once, and only where no ``*args`` says the same.
        if kind is parameter.KEYWORD_ONLY and not {parameter.VAR_POSITIONAL, kind} & set(
            kinds[:index]
        ):
            parts.append("*")
        parts.append(_parameter(parameter))
        if kind is parameter.POSITIONAL_ONLY and kinds[index + 1 : index + 2] != [kind]:
            parts.append("/")
    return f"def {name}({', '.join(parts)}) -> {result_text(signature.return_annotation)}: ..."


def _parameter(parameter: inspect.Parameter) -> str:
    text = f"{_STARS.get(parameter.kind, '')}{parameter.name}: {type_text(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {_default(parameter)}"


def _default(parameter: inspect.Parameter) -> str:
    """The default as it is written where that is short and of the declared type, else ``...``."""
    value = parameter.default
    plain = isinstance(value, bool | int | str) or (
        isinstance(value, float) and math.isfinite(value)
    )
    allows_none = type_text(parameter.annotation).split(" | ")[-1] in {"None", "Any", "object"}
    if (plain and type(value) in {bool, int, float, str}) or (value is None and allows_none):
        text = repr(value)
        if len(text) <= _MAX_DEFAULT and text.isprintable():
            return text
    return "..."


def type_text(annotation: Any) -> str:
    """``annotation`` as a parameter's type."""
    return _text(annotation, json=False)


def result_text(annotation: Any) -> str:
    """``annotation`` as the type of a result that has crossed as JSON."""
    return _text(annotation, json=True)


def _text(annotation: Any, *, json: bool) -> str:
    if isinstance(annotation, typing.Hashable) and annotation in _SCALARS:
        text = _SCALARS[annotation]
        return "str" if json and text == "bytes" else text
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _text(args[0], json=json)
    if origin in {Union, types.UnionType}:
        return _union([_text(arg, json=json) for arg in args])
    if origin is Literal:
        return _literal(args)
    kind = origin or annotation
    if kind is tuple:
        return _tuple(args, bare=origin is None and args == () and annotation is tuple, json=json)
    if isinstance(kind, type) and kind in _ELEMENTS:
        return _container(kind, args, json=json)
    if json and _becomes_dict(annotation):
        return "dict[str, Any]"
    if json and isinstance(kind, type) and issubclass(kind, RootModel):
        return _text(kind.model_fields["root"].annotation, json=True)
    return "Any"


def _union(texts: list[str]) -> str:
    """The union, with None last as people write it; Any swallows the rest."""
    if "Any" in texts:
        return "Any"
    unique = list(dict.fromkeys(texts))
    return " | ".join(sorted(unique, key=lambda text: text == "None"))


def _literal(values: tuple[Any, ...]) -> str:
    # By the very type: a member of an enum may be a text too, and the checker does not know enums.
    plain = all(value is None or type(value) in {bool, int, str} for value in values)
    texts = [ascii(value) for value in values]
    return f"Literal[{', '.join(texts)}]" if plain else "Any"


def _tuple(args: tuple[Any, ...], *, bare: bool, json: bool) -> str:
    if bare:
        return "list[Any]" if json else "tuple[Any, ...]"
    if not json:
        texts = ["..." if arg is Ellipsis else _text(arg, json=False) for arg in args]
        return f"tuple[{', '.join(texts) or '()'}]"
    return (
        f"list[{_union([_text(arg, json=True) for arg in args if arg is not Ellipsis] or ['Any'])}]"
    )


def _container(kind: type, args: tuple[Any, ...], *, json: bool) -> str:
    texts = [_text(arg, json=json) for arg in args] or ["Any"] * _ELEMENTS[kind]
    if json and kind is dict:
        texts[0] = "str"
    name = "list" if json and kind is not dict else kind.__name__
    return f"{name}[{', '.join(texts)}]"


def _becomes_dict(annotation: Any) -> bool:
    """Whether JSON makes a dict of the values of this class."""
    if not isinstance(annotation, type):
        return False
    if issubclass(annotation, BaseModel):
        # One that serializes itself may become anything.
        itself = annotation.__pydantic_decorators__.model_serializers
        return not itself and not issubclass(annotation, RootModel)
    return dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)
