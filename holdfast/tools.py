"""Marking a function as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from runtime.base.errors import InputError
from runtime.tools.functions import check_function, check_workspace, unread_signature
from runtime.tools.marks import Marks

__all__ = ["tool"]

F = TypeVar("F", bound=Callable[..., Any])
Approval = Literal["never", "always", "once-per-args"]
Effect = Literal["pure", "idempotent", "once"]


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    effect: Effect = ...,
    timeout: float | str | None = ...,
    retries: int = ...,
    approval: Approval = ...,
    workspace: bool = ...,
    queue: str | None = ...,
) -> Callable[[F], F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "idempotent",
    timeout: float | str | None = None,
    retries: int = 0,
    approval: Approval = "never",
    workspace: bool = False,
    queue: str | None = None,
) -> Any:
    """Say that a function is a tool, and how its calls are made; have what a jobs file would refuse
    refused where it is written. The function stays what it is.

    A tool needs no mark: a jobs file names it as ``module:function``.

    Args:
        function: the function, where the decorator is used bare.
        effect: ``pure`` (it changes nothing), ``idempotent`` (running it twice is running it once),
            or ``once``: it never runs a second time for one call, whatever crashes.
        timeout: seconds, or a text such as ``"5m"``, after which a call's process is ended.
        retries: how often a call is made again that raised or whose process ended; not of ``once``.
        approval: whether a person is asked before a call: ``always``, or ``once-per-args``.
        workspace: it works on the job's own files, whose directory it gets as its keyword-only
            parameter ``workspace``; what it leaves there is the job's next version.
        queue: only workers that were started with this queue make its calls (``holdfast worker
            --queue NAME``); a job waits for one for as long as its deadline lets it.

    Raises:
        InputError: it is no function or a generator, has a parameter without an annotation, or a
            name that statements know otherwise; or the marks contradict each other.
    """

    def marked(function: F) -> F:
        target = _checked(function)
        try:
            marks = Marks.checked(
                effect=effect,
                timeout=timeout,
                retries=retries,
                approval=approval,
                workspace=workspace,
                queue=queue,
            )
        except InputError as error:
            raise InputError(f"the tool {target!r}: {error}") from None
        if workspace:
            check_workspace(unread_signature(function), target)
        marks.put_on(function)
        return function

    return marked if function is None else marked(function)


def _checked(function: Callable[..., Any]) -> str:
    """The name in a jobs file of a function that can be a tool."""
    if not inspect.isfunction(function):
        # As ``@tool("once")`` gives.
        raise InputError(f"expected a function, got {type(function).__name__}")
    target = f"{function.__module__}:{function.__name__}"
    check_function(function, target)
    for parameter in unread_signature(function).parameters.values():
        if parameter.annotation is parameter.empty:
            raise InputError(
                f"tools are typed, but the parameter {parameter.name!r} of {target!r} has no"
                " annotation"
            )
    return target
