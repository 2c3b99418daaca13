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
    names = sorted(request)
    place = names.index(MESSAGES)
    head = b"{" + b"".join(_field(n, request[n]) + b"," for n in names[:place])
    tail = b"]" + b"".join(b"," + _field(n, request[n]) for n in names[place + 1 :]) + b"}"
    pieces = [*encoded.pieces] or [b""]
    pieces[0] = head + canonical_json(MESSAGES) + b":[" + pieces[0]
    pieces[-1] += tail
    # In one go: a copy of a long prompt's megabytes costs more than all that is new in it.
    return b",".join(pieces)


def forget(job: str) -> None:
    """``job`` has ended: no other prompt of its comes."""
    _last.forget(job)


def _field(name: str, value: Any) -> bytes:
    return canonical_json(name) + b":" + canonical_json(value)
