"""Calls that a person decides on: what is shown of one, and the call that is made instead. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.base.redaction.masked_edits import Place, put_back
from runtime.context.outcomes import Refused
from runtime.interpreter import hands
from runtime.interpreter.host import Effect, EffectKind

_UNSAID = {"timeout": 60.0, "stdin": "", "env": {}}
"""What a command has that does not say otherwise: nobody need read it."""


def shown_arguments(effect: Effect) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments, by position and by name."""
    request = effect.request
    if effect.kind is not EffectKind.CHANGE:
        return getattr(request, "args", ()), request.kwargs
    if request.operation == hands.TOOL:
        return tuple(request.arguments["args"]), request.arguments["kwargs"]
    arguments = dict(request.arguments)
    command = arguments.pop("command")
    return (command,), {name: value for name, value in arguments.items() if value != _UNSAID[name]}


def other_request(effect: Effect, arguments: dict[str, Any], kept: Sequence[Place]) -> Any:
    """The question of the call with other ``arguments`` (``args`` and ``kwargs``), which at the
    places that were ``kept`` are its own.

    Raises:
        Refused: if they do not fit.
    """
    # By the same view of the call that the person was shown: places are counted in it.
    args, kwargs = shown_arguments(effect)
    shown = {"args": list(args), "kwargs": kwargs}
    try:
        other = put_back({**shown, **arguments}, kept, shown)
    except (LookupError, TypeError) as error:
        raise Refused(ValueError, "what was to stay is not there") from error
    request = effect.request
    if effect.kind is EffectKind.CHANGE and request.operation == hands.TOOL:
        return hands.asked_of_tool(effect.name, other)
    if effect.kind is EffectKind.CHANGE:
        return hands.asked(effect.name, tuple(other["args"]), other["kwargs"])
    fields = {name: other[name] for name in type(request).model_fields if name in other}
    return request.model_copy(update=fields)
