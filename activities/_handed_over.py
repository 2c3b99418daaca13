"""Requests of providers without a wire as bytes: canonical JSON, of which a turn makes what is new.

A prompt of a long job is some megabytes, and all but its end stood in the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import compress, count
from operator import ne
from typing import Any

from runtime.archive.caches import Recent
from runtime.base.digests import canonical_json
from runtime.base.open_jobs import open_jobs

MESSAGES = "messages"

_UNLIKE = object()
"""Stands for a message that is made into bytes each time: 1, 1.0 and True are equal, and their JSON
is not.
"""


@dataclass(frozen=True)
class Encoded:
    """Messages, as they were when they were made into JSON, and the JSON of each."""

    messages: tuple[Any, ...] = ()
    pieces: tuple[bytes, ...] = ()

    def followed_by(self, messages: Sequence[Any]) -> Encoded:
        """Those of a prompt that may begin as this one does."""
        # In C, item by item up to the first that differs: a long prompt has thousands of messages.
        differ = map(ne, self.messages, messages)
        same = next(compress(count(), differ), min(len(self.messages), len(messages)))
        fresh = messages[same:]
        return Encoded(
            (*self.messages[:same], *map(_as_it_is, fresh)),
            (*self.pieces[:same], *map(canonical_json, fresh)),
        )


_last: Recent[Encoded] = Recent(open_jobs())
"""The jobs' last prompts."""


def handed_over(job: str, request: Mapping[str, Any]) -> bytes:
    """The canonical JSON of a request of ``job``'s, which has ``messages``."""
    encoded = (_last.get(job) or Encoded()).followed_by(request[MESSAGES])
    _last.put(job, encoded)
    return b"{" + b",".join(_field(name, request[name], encoded) for name in sorted(request)) + b"}"


def forget(job: str) -> None:
    """``job`` has ended: no other prompt of its comes."""
    _last.forget(job)


def _field(name: str, value: Any, encoded: Encoded) -> bytes:
    told = b"[" + b",".join(encoded.pieces) + b"]" if name == MESSAGES else canonical_json(value)
    return canonical_json(name) + b":" + told


def _as_it_is(message: Any) -> Any:
    """The message, to compare with others later; whoever has it may change it."""
    return deepcopy(message) if _is_text(message) else _UNLIKE


def _is_text(value: Any) -> bool:
    """Whether nothing but texts, and what holds them, is in a value of JSON's kinds."""
    if type(value) is dict:
        return all(type(name) is str and _is_text(item) for name, item in value.items())
    if type(value) is list:
        return all(map(_is_text, value))
    return value is None or type(value) is str
