"""The value of a statement's last expression, as an interactive session would show it."""

from __future__ import annotations

from typing import Any

from pydantic_monty import MontyClassProxy, MontyClassTypeProxy, MontyComplete, MontyStdTypeProxy

from runtime.base.characters import as_literal
from runtime.context.outcomes import NodeRef
from runtime.interpreter import output
from runtime.interpreter.bounds import NO_KEY, too_large
from runtime.interpreter.handles import Handles


def echo(complete: MontyComplete, handles: Handles) -> str:
    """The text to show, bounded; empty for None and for a handle, which the prompt shows itself."""
    try:
        made = complete.output
    except TypeError:
        return f"<{NO_KEY}: print the value>"
    # First of all: what follows walks through all of the value.
    if too_large(made):
        return f"<{type(made).__name__} too large to be shown: print a part of it>"
    value = handles.incoming(made)
    if value is None or isinstance(value, NodeRef):
        return ""
    return output.bounded(value if isinstance(value, str) else text_of(value))


def text_of(value: Any) -> str:
    """``repr`` that does not depend on the process: sets are sorted and sandbox objects are named
    by their class.
    """
    match value:
        case list():
            return "[" + ", ".join(map(text_of, value)) + "]"
        # A named tuple has a repr of its own.
        case tuple() if type(value) is tuple:
            return "(" + ", ".join(map(text_of, value)) + ("," if len(value) == 1 else "") + ")"
        case dict():
            return (
                "{"
                + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items())
                + "}"
            )
        case set() | frozenset():
            shown = "{" + ", ".join(sorted(map(text_of, value))) + "}" if value else ""
            return f"frozenset({shown})" if isinstance(value, frozenset) else shown or "set()"
        case NodeRef(obj_id=obj_id):
            return f"<{obj_id}>"
        case MontyClassProxy(name=name):
            return f"<{name} object>"
        case MontyStdTypeProxy(name=name) | MontyClassTypeProxy(name=name):
            return f"<{name}>"
        case _:
            try:
                return as_literal(value)
            # Python refuses to print numbers of more than 4,300 digits.
            except ValueError as error:
                return f"<{type(value).__name__}: {error}>"
