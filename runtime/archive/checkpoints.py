"""Checkpoints in the archive: a job's whole state after a turn, beside the turn's step.

A checkpoint refers to its step, and the record after it names the checkpoint. A job could be
rebuilt from its steps without any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runtime.archive import keys
from runtime.archive.container import Part, unseal
from runtime.archive.forms import CheckpointForm
from runtime.archive.forms.base import sized
from runtime.archive.frames import compress
from runtime.archive.job import JobArchive
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import StepRef, Value


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
    _, archived = archive.objects.put(key, form, (Part("state", compress(text), len(text)),))
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
    text = archived.frame("state")
    form = CheckpointForm.read(archived)
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
                if (found := keys.parse_turn_key(key)) is not None
                and found.kind == "checkpoint"
                and span.first <= found.turn <= newest
            ]
            yield from reversed(listed)
