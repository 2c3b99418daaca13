"""What a tool says of its calls, beside its signature: the decorator ``holdfast.tool`` notes it at
the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeVar

from runtime.base.durations import parse_duration
from runtime.base.effect_classes import Approval, EffectClass
from runtime.base.errors import InputError

MAX_RETRIES = 20
MAX_QUEUE = 64
MAX_TIMEOUT = 6 * 3600.0
"""Seconds; a call may take no longer anyway."""

QUEUE_RULE = f"a name of at most {MAX_QUEUE} letters, digits, '-', '_' and '.'"

Kind = TypeVar("Kind", bound=StrEnum)
_QUEUE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_QUEUE - 1}}}")
_ATTRIBUTE = "__holdfast_tool__"


@dataclass(frozen=True)
class Marks:
    """How a tool's calls are made. ``timeout`` is in seconds, of each try; ``retries`` are the
    tries after a first that failed. ``workspace``: it works on the job's own files. ``queue``: the
    workers that take its calls, None for those of its batch.

    The defaults are those of a function without a decorator.
    """

    effect: EffectClass = EffectClass.IDEMPOTENT
    timeout: float | None = None
    retries: int = 0
    approval: Approval = Approval.NEVER
    workspace: bool = False
    queue: str | None = None

    @classmethod
    def checked(
        cls,
        *,
        effect: object,
        timeout: object,
        retries: object,
        approval: object,
        workspace: object = False,
        queue: object = None,
    ) -> Self:
        """The marks, as they were written.

        Raises:
            InputError: if one is none, or they contradict each other.
        """
        known = _one_of(EffectClass, "effect", effect)
        asked = _one_of(Approval, "approval", approval)
        # True is an int as well, and no number of tries.
        if type(retries) is not int or not 0 <= retries <= MAX_RETRIES:
            raise InputError(f"expected retries from 0 to {MAX_RETRIES}, got {retries!r}")
        if known is EffectClass.ONCE and retries:
            raise InputError(f"expected no retries with effect 'once', got {retries}")
        if not isinstance(workspace, bool):
            raise InputError(f"expected workspace to be True or False, got {workspace!r}")
        seconds = None if timeout is None else _seconds(timeout)
        if queue is not None and not is_queue(queue):
            raise InputError(f"expected queue to be {QUEUE_RULE}, got {queue!r}")
        return cls(known, seconds, retries, asked, workspace, None if queue is None else str(queue))

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Marks:
        """Those of a function; the defaults if it has none."""
        marks = getattr(function, _ATTRIBUTE, None)
        return marks if isinstance(marks, Marks) else Marks()

    def put_on(self, function: Callable[..., Any]) -> None:
        """Have a function say them."""
        setattr(function, _ATTRIBUTE, self)


def is_queue(name: object) -> bool:
    """Whether a queue of tools can have the name."""
    return isinstance(name, str) and _QUEUE.fullmatch(name) is not None


def _one_of(kind: type[Kind], name: str, value: object) -> Kind:
    try:
        return kind(str(value))
    except ValueError:
        wanted = ", ".join(repr(one.value) for one in kind)
        raise InputError(f"expected {name} to be one of {wanted}, got {value!r}") from None


def _seconds(timeout: object) -> float:
    try:
        seconds = parse_duration(timeout)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_TIMEOUT:
        raise InputError(
            f"expected timeout as seconds or as '30s', at most 6 hours, got {timeout!r}"
        )
    return seconds
