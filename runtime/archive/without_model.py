"""Turns for which no model was called: what their request says instead, and the step whose call a
replayed reply comes from.
"""

from __future__ import annotations

import json

from runtime.archive import keys
from runtime.archive.forms import Capture, Step
from runtime.archive.job import JobArchive
from runtime.archive.requests import RequestReader
from runtime.archive.stores import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import StepRef

_TOLD, _REPLY = "no model was called", "the reply is"
# Digests allow no circle in a sound archive; a damaged one must not be walked for ever.
_MOST_REPLAYS = 10_000


def request_without_model(reply: StepRef | None) -> bytes:
    """The request of such a turn: its reply is that of the step ``reply``, or a statement that a
    user wrote.
    """
    source = "a user's statement" if reply is None else reply.model_dump(mode="json")
    return canonical_json({_TOLD: {_REPLY: source}})


def origin_of(store: ObjectStore, step: Step) -> Step:
    """The step in which a model was asked for the reply of ``step``, through any number of replays,
    or a user wrote it.

    Raises:
        ObjectCorrupt: if a request does not say which.
    """
    for _ in range(_MOST_REPLAYS):
        if step.capture is not Capture.REPLAYED:
            return step
        wire = RequestReader(store.get).wire(step.attempt.key)
        try:
            ref = StepRef.model_validate(json.loads(wire)[_TOLD][_REPLY])
        except (ValueError, KeyError, TypeError) as error:
            raise ObjectCorrupt(
                f"{step.attempt.key}: it does not say which step it replays"
            ) from error
        place = keys.parse_turn_key(ref.key)
        if place is None:
            raise ObjectCorrupt(f"{step.attempt.key}: {ref.key} is no step")
        step = JobArchive.of(store, keys.job_of(place.job)).step(ref)
    raise ObjectCorrupt(f"{step.ref.key}: its replays lead nowhere")
