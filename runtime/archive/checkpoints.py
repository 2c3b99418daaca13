"""Checkpoints in the archive: a job's whole state after a turn, beside the turn's step.

A checkpoint refers to its step, and the object after it names the checkpoint. A job could be
rebuilt from its steps without any.

Nearly all of a long job's state are texts that stand in the layout of its last prompt too, so that
is the dictionary with which it is compressed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, Part, unseal
from runtime.archive.forms import CheckpointForm
from runtime.archive.forms.base import sized
from runtime.archive.frames import compress
from runtime.archive.job import JobArchive
from runtime.archive.requests import RequestReader
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef, Value

_WHOLE, _AGAINST_LAYOUT = "state", "state.layout"
"""The parts that may hold the state: a frame without a dictionary, as the first releases wrote, or
one whose dictionary is the document of the layout of the parent's attempt.
"""


class Checkpoint(Value):
    """A checkpoint as archived.

    ``parent`` is the step of its turn; ``interpreter`` wrote the session in ``state``.
    """

    ref: StepRef
    run: str
    turn: int
    parent: StepRef
    interpreter: str
    state: dict[str, Any]


def write_checkpoint(
    archive: JobArchive,
    *,
    run: str,
    turn: int,
    parent: StepRef,
    interpreter: str,
    state: dict[str, Any],
) -> StepRef:
    """Archive the state after ``turn``.

    If the turn has a checkpoint in this run already, that one's address is returned.
    """
    text = canonical_json(state)
    form = CheckpointForm(
        run=run, turn=turn, parent=parent, interpreter=interpreter, state=sized(text)
    )
    key = keys.checkpoint_key(archive.prefix, run, turn)
    try:
        frame, name = compress(text, archive.layout_document(parent)), _AGAINST_LAYOUT
    # The dictionary only saves room: a layout that cannot be read must cost no checkpoint.
    except (ObjectCorrupt, ObjectMissing):
        frame, name = compress(text), _WHOLE
    _, archived = archive.objects.put(key, form, (Part(name, frame, len(text)),))
    return StepRef(key=key, digest=archived.digest)


def read_checkpoint(store: ObjectStore, ref: StepRef) -> Checkpoint:
    """The checkpoint at an address, its digests checked.

    Raises:
        ObjectCorrupt: if it is damaged.
        ObjectMissing: if it is not there.
    """
    archived = unseal(ref.key, store.get(ref.key), "checkpoint")
    if archived.digest != ref.digest:
        raise ObjectCorrupt(
            f"{ref.key} has digest {archived.digest}, not {ref.digest} by which it is referred to"
        )
    form = CheckpointForm.read(archived)
    step = unseal(form.parent.key, store.get(form.parent.key), "step")
    text = state_text(archived, step, RequestReader(store.get))
    if sized(text) != form.state:
        raise ObjectCorrupt(f"{ref.key}: its state does not have the digest that it gives")
    return Checkpoint(
        ref=ref,
        run=form.run,
        turn=form.turn,
        parent=form.parent,
        interpreter=form.interpreter,
        state=json.loads(text),
    )


def state_text(checkpoint: ArchivedObject, parent: ArchivedObject, reader: RequestReader) -> bytes:
    """The JSON of a checkpoint's state; ``parent`` is its step.

    Raises:
        ObjectCorrupt: if it cannot be read.
        ObjectMissing: if something of the layout that it is stored against is not there.
    """
    if checkpoint.part(_WHOLE):
        return checkpoint.frame(_WHOLE)
    layout = reader.layout(parent.header["attempt"]["key"])
    return checkpoint.frame(_AGAINST_LAYOUT, layout)


def last_checkpoint(archive: JobArchive, run: str, turn: int) -> StepRef | None:
    """The newest checkpoint of ``run``, or of the runs that it started from, at ``turn`` or before;
    None if there is none.
    """
    for key in _keys_before(archive, run, turn):
        return StepRef(key=key, digest=unseal(key, archive.store.get(key), "checkpoint").digest)
    return None


def _keys_before(archive: JobArchive, run: str, turn: int) -> Iterator[str]:
    """Checkpoints' keys at ``turn`` or before, newest first. Looks at a hundred turns at a time."""
    for span in reversed(archive.lineage.spans(run)):
        newest = turn if span.last is None else min(turn, span.last)
        for hundred in range(newest // 100, span.first // 100 - 1, -1):
            listed = [
                key
                for key in archive.store.list(f"{span.prefix}{hundred:05d}/")
                if (place := keys.parse_turn_key(key)) is not None
                and place.kind == "checkpoint"
                and span.first <= place.turn <= newest
            ]
            yield from reversed(listed)
