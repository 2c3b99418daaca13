"""Checkpoints in the archive: a job's whole state after a turn, beside the turn's step.

A checkpoint refers to its step, and the object after it names the checkpoint. A job could be
rebuilt from its steps without any.

Nearly all of a long job's state stands elsewhere: texts, and their digests, in the layout of its
last prompt, and most of the interpreter's session in the checkpoints before. So it is stored
*against* these. Chains of sessions are short, and begin anew now and then: one damaged checkpoint
hides ``_GROUP`` at most.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, Part, referred
from runtime.archive.forms import CheckpointForm, opened
from runtime.archive.forms.base import sized
from runtime.archive.frames import compress
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.layouts import lines_of
from runtime.archive.requests import RequestReader
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json, digest_bytes, joined_digests
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import StepRef, Value

_log = logging.getLogger(__name__)

_WHOLE, _AGAINST_LAYOUT, _REST, _SESSION = "state", "state.layout", "rest", "session"
"""The parts that may hold the state: a frame without a dictionary, as the first releases wrote; one
whose dictionary is the document of the layout of the parent's attempt, as later ones did; or two,
of the state with an empty session, and of the session.
"""

Get = Callable[[str, str], ArchivedObject]
"""The object at a key, of the kind that it must have.

Raises:
    ObjectMissing, ObjectCorrupt: if it cannot be read.
"""

_GROUP = 16
"""Every so many checkpoints have their whole session."""

_MALFORMED = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""What comes of a header, or of a state, that is none."""


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
        form, parts = _against_others(archive, form, state)
    # What it is stored against only saves room: what cannot be read must cost no checkpoint.
    except UNREADABLE:
        parts = (Part(_WHOLE, compress(text), len(text)),)
    _, archived = archive.objects.put(key, form, parts)
    return StepRef(key=key, digest=archived.digest)


def _against_others(
    archive: JobArchive, form: CheckpointForm, state: dict[str, Any]
) -> tuple[CheckpointForm, tuple[Part, ...]]:
    """A state's parts, and what its form says of what they are stored against."""
    rest, session = _parted(state)
    parts = [Part(_REST, compress(rest, _known(archive.layout_document(form.parent))), len(rest))]
    if session:
        get = _from(archive.store)
        number, base = _base(archive, get, form)
        known = b""
        if base is not None:
            known = _session(base, get)
            form = form.model_copy(update={"against": StepRef(key=base.key, digest=base.digest)})
        form = form.model_copy(update={"number": number})
        parts.append(Part(_SESSION, compress(session, known), len(session)))
    return form, tuple(parts)


def _base(archive: JobArchive, get: Get, form: CheckpointForm) -> tuple[int, ArchivedObject | None]:
    """A checkpoint's number, and the one that its session is stored against.

    That is the one whose number is its own without the lowest bit that is set, so a chain has no
    more links than that has bits.
    """
    base = _last(archive, form.run, form.turn - 1)
    if base is None or keys.job_prefix_in(base.key) != archive.prefix or _SESSION not in base.names:
        return 0, None
    told = CheckpointForm.read(base)
    number = told.number + 1
    if number % _GROUP == 0:
        return number, None
    while told.number > number & (number - 1) and told.against is not None:
        base = _at(told.against, get)
        told = CheckpointForm.read(base)
    return number, base


def _parted(state: dict[str, Any]) -> tuple[bytes, bytes]:
    """The JSON of a state with an empty session, and what its session is the base64 of; without
    one, all of it and nothing.
    """
    try:
        session = base64.b64decode(state.get(_SESSION) or "", validate=True)
    except (TypeError, ValueError):
        session = b""
    if not session or base64.b64encode(session).decode() != state[_SESSION]:
        return canonical_json(state), b""
    return canonical_json({**state, _SESSION: ""}), session


def _known(layout: bytes) -> bytes:
    """What of a layout a state has again: its segments' digests in one, as base64, and texts."""
    return joined_digests(map(digest_bytes, lines_of(layout))).encode() + layout


def read_checkpoint(store: ObjectStore, ref: StepRef) -> Checkpoint:
    """The checkpoint at an address, its digests checked.

    Raises:
        ObjectCorrupt: if it is damaged.
        ObjectMissing: if it is not there.
    """
    return _opened(store, _at(ref, _from(store)))


def _opened(store: ObjectStore, archived: ArchivedObject) -> Checkpoint:
    form = CheckpointForm.read(archived)
    text = state_text(archived, _from(store), RequestReader(store.get))
    if sized(text) != form.state:
        raise ObjectCorrupt(f"{archived.key}: its state does not have the digest that it gives")
    return Checkpoint(
        ref=StepRef(key=archived.key, digest=archived.digest),
        run=form.run,
        turn=form.turn,
        parent=form.parent,
        interpreter=form.interpreter,
        state=json.loads(text),
    )


def state_text(checkpoint: ArchivedObject, get: Get, reader: RequestReader) -> bytes:
    """The JSON of a checkpoint's state.

    Raises:
        ObjectCorrupt: if it cannot be read.
        ObjectMissing: if something that it is stored against is not there.
    """
    if _WHOLE in checkpoint.names:
        return checkpoint.frame(_WHOLE)
    try:
        step = get(CheckpointForm.read(checkpoint).parent.key, "step")
        layout = reader.layout(step.header["attempt"]["key"])
        if _AGAINST_LAYOUT in checkpoint.names:
            return checkpoint.frame(_AGAINST_LAYOUT, layout)
        rest = checkpoint.frame(_REST, _known(layout))
        if _SESSION not in checkpoint.names:
            return rest
        session = base64.b64encode(_session(checkpoint, get)).decode()
        return canonical_json({**json.loads(rest), _SESSION: session})
    except _MALFORMED as error:
        raise ObjectCorrupt(f"{checkpoint.key}: its state cannot be read: {error}") from error


def _session(checkpoint: ArchivedObject, get: Get) -> bytes:
    chain, told = [checkpoint], CheckpointForm.read(checkpoint)
    while told.against is not None:
        chain.append(_at(told.against, get))
        number, told = told.number, CheckpointForm.read(chain[-1])
        # A header that somebody made may lead in a circle.
        if told.number >= number:
            raise ObjectCorrupt(f"{chain[-2].key}: is stored against one that is no earlier one")
    session = b""
    for link in reversed(chain):
        session = link.frame(_SESSION, session)
    return session


def _at(ref: StepRef, get: Get) -> ArchivedObject:
    """The checkpoint at an address, its digest checked."""
    return referred(get(ref.key, "checkpoint"), ref.digest)


def _from(store: ObjectStore) -> Get:
    return lambda key, kind: opened(key, store.get(key), kind)


def checkpoint_before(archive: JobArchive, run: str, turn: int) -> Checkpoint | None:
    """The newest checkpoint of ``run``, or of the runs that it started from, at ``turn`` or before;
    None if there is none.

    One that cannot be read is told in the log and passed over: an older one, and the turns behind
    it, come to the same.
    """
    for key in _keys_before(archive, run, turn):
        try:
            return _opened(archive.store, opened(key, archive.store.get(key), "checkpoint"))
        except UNREADABLE as error:
            _log.warning("a checkpoint that cannot be read is passed over: %s", error)
    return None


def _last(archive: JobArchive, run: str, turn: int) -> ArchivedObject | None:
    for key in _keys_before(archive, run, turn):
        return opened(key, archive.store.get(key), "checkpoint")
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
