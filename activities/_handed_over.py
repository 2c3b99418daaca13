"""Requests of providers without a wire as bytes: canonical JSON, of which a turn makes what is new.

A prompt of a long job is some megabytes, and all but its end stood in the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from activities._unchanged import comparable, unchanged
from runtime.archive.caches import Recent
from runtime.base.digests import canonical_json
from runtime.base.open_jobs import open_jobs

MESSAGES = "messages"


@dataclass(frozen=True)
class Encoded:
    """Messages, as they were when they were made into JSON, and the JSON of each."""

    messages: tuple[Any, ...] = ()
    pieces: tuple[bytes, ...] = ()

    def followed_by(self, messages: Sequence[Any]) -> Encoded:
        """Those of a prompt that may begin as this one does."""
        same = unchanged(self.messages, messages)
        fresh = messages[same:]
        return Encoded(
            # Copies, to compare others with later: whoever has a message may change it.
            (*self.messages[:same], *map(comparable, deepcopy(fresh))),
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
