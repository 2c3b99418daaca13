"""Marking a function as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from runtime.base.errors import InputError
from runtime.tools.functions import check_function

__all__ = ["tool"]

F = TypeVar("F", bound=Callable[..., Any])


def tool(function: F) -> F:
    """Say that a function is a tool, and have what a jobs file would refuse refused where it is
    written. Changes nothing of it.

    A tool needs no mark: a jobs file names it as ``module:function``.

    Raises:
        InputError: it is a generator, has a parameter without an annotation, or a name that
            statements know otherwise.
    """
    target = f"{function.__module__}:{function.__name__}"
    check_function(function, target)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation is parameter.empty:
            raise InputError(
                f"tools are typed, but the parameter {parameter.name!r} of {target!r} has no"
                " annotation"
            )
    return function
