"""The base of every value that crosses a room's border, and the values that all rooms share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import not_
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Value(BaseModel):
    """A frozen value; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def like(cls, other: Value, **more: Any) -> Self:
        """One with the fields that ``other`` has too, and ``more``."""
        same = {name: getattr(other, name) for name in _shared(type(other), cls)}
        return cls(**(same | more))


@dataclass(frozen=True)
class LeftOut:
    """Marks a field that an archived header does not have where its value is ``empty``: most turns
    condense nothing, and few sleep.
    """

    empty: Callable[[Any], bool] = not_


@dataclass(frozen=True)
class Later:
    """Marks a field that every archived header has now, and those of earlier releases do not."""


def fields_of(*values: Value) -> dict[str, Any]:
    """The fields of several values, in one."""
    return {name: field for value in values for name, field in value}


class Compact(Value):
    """A value whose JSON leaves out fields that have their default: what every turn adds to a
    history stays small.
    """

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults, own = _defaults(type(self)), self.__dict__
        data: dict[str, Any] = serialize(self)
        # By identity first: most fields have the default itself, and comparing costs more.
        return {
            name: value
            for name, value in data.items()
            if name not in defaults
            or (own[name] is not defaults[name] and own[name] != defaults[name])
        }


_TAGS = frozenset({"op", "type"})
"""Fields that tell the members of a union apart are always written."""


# What pydantic tells of a class it looks for each time.
@cache
def _shared(one: type[BaseModel], other: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name in one.model_fields if name in other.model_fields)


@cache
def _defaults(of: type[BaseModel]) -> dict[str, Any]:
    """What the fields have that need not be written."""
    return {name: field.default for name, field in of.model_fields.items() if name not in _TAGS}


class JobKey(Compact):
    """A job's address: its batch and its id in the batch."""

    batch: str
    job: str

    @classmethod
    def named(cls, name: str) -> JobKey | None:
        """The job of a name that is written in full (``BATCH/ID``); None if it is not."""
        batch, _, job = name.partition("/")
        return JobKey(batch=batch, job=job) if batch and job else None

    def __str__(self) -> str:
        return f"{self.batch}/{self.job}"

    def __lt__(self, other: JobKey) -> bool:
        return (self.batch, self.job) < (other.batch, other.job)


class ToolCall(Value):
    """One native tool call of a reply, as the provider gave it.

    ``arguments`` is the JSON text, unparsed.
    """

    id: str
    name: str
    arguments: str


class StepRef(Value):
    """The address of an archived step: its object key and its digest."""

    key: str
    digest: str


class Usage(Compact):
    """Tokens of one model call as the provider reported them, or as counted where it reported
    none.
    """

    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: bool = True

    @property
    def total(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt + self.completion

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            # A sum with an estimate in it is one.
            reported=self.reported and other.reported,
        )


class Failed(Compact):
    """What ``attempts`` that failed at one model call used, and the ``seconds`` for which they and
    the waits between them held it up.

    The usage is as the provider reported it. Where a request was sent and nothing said what it
    used, it is an estimate, and ``usage.reported`` is False.
    """

    attempts: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    seconds: float = 0.0

    @property
    def empty(self) -> bool:
        """No attempt failed."""
        return self.attempts == 0

    def __add__(self, other: Failed) -> Failed:
        return Failed(
            attempts=self.attempts + other.attempts,
            usage=self.usage + other.usage,
            # Rounded each time: sums of floats would differ by how they were grouped.
            cost_usd=round(self.cost_usd + other.cost_usd, 9),
            seconds=round(self.seconds + other.seconds, 3),
        )

    def since(self, before: Failed) -> Failed:
        """What was added to ``before``."""
        if self == before:
            return Failed()
        return Failed(
            attempts=self.attempts - before.attempts,
            usage=Usage(
                prompt=self.usage.prompt - before.usage.prompt,
                completion=self.usage.completion - before.usage.completion,
                cache_read=self.usage.cache_read - before.usage.cache_read,
                cache_write=self.usage.cache_write - before.usage.cache_write,
                reported=self.usage.reported,
            ),
            cost_usd=round(self.cost_usd - before.cost_usd, 9),
            seconds=round(self.seconds - before.seconds, 3),
        )


class ModelReply(Compact):
    """What a model answered.

    ``tokens`` counts the reply with the job's pinned encoding; ``cost_usd`` is litellm's price.

    ``failed`` are the attempts at the same call that came to nothing.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[dict[str, Any], ...] = ()
    finish_reason: str = "stop"
    response_id: str = ""
    refusal: str | None = None
    tokens: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    failed: Failed = Failed()
