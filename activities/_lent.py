"""The messages that litellm is handed: copies, for a provider's part of it may change them.

A long job's prompt has thousands of messages, of which a turn adds two. So the copies of a call
serve the job's next one too, as far as they still are what they were made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from activities._unchanged import comparable, unchanged
from runtime.archive.caches import Recent
from runtime.base.open_jobs import open_jobs
from runtime.projection.messages import Message, copied
from runtime.projection.segments import common


@dataclass(frozen=True)
class _Returned:
    """The copies of a call that has ended, what each was made of, and as what it was handed."""

    copies: tuple[Message, ...] = ()
    originals: tuple[Any, ...] = ()
    handed: tuple[Any, ...] = ()


_returned: Recent[_Returned] = Recent(open_jobs())


class Lent(list[Message]):
    """The messages of one call of ``job``'s, which belong to it until they are given back: a call
    at the same time has others.
    """

    def __init__(self, job: str, messages: Sequence[Message]) -> None:
        last, originals = _returned.take(job) or _Returned(), tuple(messages)
        # The prompt is another one from here on, or the call before has changed what it was handed.
        same = unchanged(last.handed[: common(last.originals, originals)], last.copies)
        fresh = list(map(_without_empty, originals[same:]))
        super().__init__((*last.copies[:same], *map(copied, fresh)))
        self._job = job
        self._whole = _Returned(
            tuple(self),
            # These messages, not those that they are equal to: a prompt takes over the very same,
            # and to compare a message with itself costs nothing.
            (*originals[:same], *map(comparable, originals[same:])),
            (*last.handed[:same], *map(comparable, fresh)),
        )

    def __copy__(self) -> list[Message]:
        """For litellm's log, which keeps a list of its own."""
        # One of another type would be filled message by message, in Python.
        return list(self)

    def give_back(self) -> None:
        """The call has ended, and nobody has kept a message."""
        _returned.put(self._job, self._whole)


def forget(job: str) -> None:
    """``job`` has ended: no other call of its comes."""
    _returned.forget(job)


def _without_empty(message: Message) -> Message:
    """The message without fields that have no value, which litellm takes out of all."""
    if None not in message.values():
        return message
    return {name: value for name, value in message.items() if value is not None}
