"""What the interpreter asks of the program around it, and the answers it gets.

A call is answered at once (``ReturnValue``, ``Failure``), or it is an ``Effect``: the statement is
suspended, the effect becomes an activity, and ``Host.answered`` turns the activity's result into
the answer that resumes the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from runtime.base.digests import digest_of


@dataclass(frozen=True)
class ReturnValue:
    """The call's value: plain data, a ``NodeRef``, or an object Monty knows (a stat, a path, a file
    handle).
    """

    value: Any


@dataclass(frozen=True)
class Failure:
    """The call raises: the name of a Python exception that Monty knows, and its message."""

    type: str
    message: str


class NotHandled:
    """The call gets Monty's own default, which for most is an error that names the call."""


class EffectKind(StrEnum):
    """Which activity an effect becomes."""

    READ = "read"
    FILE = "file"
    TOOL = "tool"
    SERVER = "server"
    CHANGE = "change"
    SPAWN = "spawn"


@dataclass(frozen=True)
class Effect:
    """A call that leaves the interpreter.

    ``request`` is the activity's question (a value of activities' contracts without the job's own
    fields); ``call`` is what the host needs to go on when the result is there.
    """

    kind: EffectKind
    name: str
    request: Any
    call: Any = None

    @property
    def digest(self) -> str:
        """The digest of the question."""
        return digest_of(self.request.model_dump(mode="json"))


Answer = ReturnValue | Failure | NotHandled
HostAnswer = Answer | Effect


class Host(Protocol):
    """The program around one statement."""

    def function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """A call of a name that the namespace does not have."""
        ...

    def method(
        self, obj_id: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HostAnswer:
        """A method call on a handle."""
        ...

    def attribute(self, obj_id: str, name: str) -> Answer:
        """An attribute of a handle."""
        ...

    def name(self, name: str) -> Answer:
        """A name that the namespace does not have."""
        ...

    def system(self, operation: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """An ``open``, ``os``, ``pathlib`` or clock call."""
        ...

    def answered(self, effect: Effect, result: Any) -> Answer:
        """The answer that resumes the statement, from the effect's result."""
        ...

    def take_output(self) -> str:
        """Text that calls since the last time want printed (``show``)."""
        ...
