"""What outside the archive vouches for a run's chain: Temporal's history, a signature by a trusted
key, object lock, or a head that was kept elsewhere.

Without any of these a chain is self-attested: it shows that nothing was altered by accident, and
not that nobody wrote the whole of it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, unseal
from runtime.archive.forms import Signature, opened
from runtime.archive.job import JobArchive
from runtime.archive.signing import fingerprint, is_valid, signed_text
from runtime.archive.stores.removal import RetainingStore
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef, Value


class AnchorKind(StrEnum):
    """What vouches for a chain."""

    HISTORY = "temporal-history"
    SIGNATURE = "signature"
    OBJECT_LOCK = "object-lock"
    KEPT_HEAD = "kept-head"
    LATER_RECORD = "later-record"


class Anchor(Value):
    """One thing that vouches for a run's chain: for the ``whole`` of it, or for what stands before
    its last objects.
    """

    kind: AnchorKind
    whole: bool
    detail: str


class RunAnchors(Value):
    """What vouches for a run. ``head`` is the key of what the chain ends with, ``turn`` its turn.

    ``untrusted`` is the fingerprint of a key that signed the end and that nobody said to trust.
    """

    run: str
    head: str
    turn: int
    ended: bool
    anchors: tuple[Anchor, ...] = ()
    untrusted: str | None = None

    @property
    def anchored(self) -> bool:
        """Whether the whole chain is vouched for."""
        return any(anchor.whole for anchor in self.anchors)


def run_anchors(
    archive: JobArchive,
    trusted: frozenset[str],
    witnesses: Sequence[StepRef] = (),
    kept: Sequence[StepRef] = (),
) -> list[RunAnchors]:
    """What vouches for each run.

    ``witnesses`` are what Temporal's history holds of it, ``kept`` what a head does that was kept.

    An object that is damaged vouches for nothing; ``examine_job`` reports it.
    """
    runs = [_of_run(archive, head, trusted, witnesses, kept) for head in _heads(archive)]
    return _with_earlier(archive, runs)


def _with_earlier(archive: JobArchive, runs: list[RunAnchors]) -> list[RunAnchors]:
    """What vouches for a run vouches for those whose heads its start, or its first step, names."""
    by_run = {one.run: one for one in runs}
    anchored = [one for one in runs if one.anchored]
    while anchored:
        later = anchored.pop()
        for head, digest in _named_at_start(archive, later.run):
            earlier = next(
                (one for one in by_run.values() if one.head == head and not one.anchored), None
            )
            # A start that names another digest than the head has now vouches for an object that is
            # gone.
            if earlier is None or _digest_at(archive, head) != digest:
                continue
            detail = f"the record of run {later.run}, which is anchored, names its head"
            anchor = Anchor(kind=AnchorKind.LATER_RECORD, whole=True, detail=detail)
            vouched = earlier.model_copy(update={"anchors": (*earlier.anchors, anchor)})
            by_run[earlier.run] = vouched
            anchored.append(vouched)
    return [by_run[one.run] for one in runs]


def _named_at_start(archive: JobArchive, run: str) -> Iterator[tuple[str, str]]:
    try:
        start = archive.objects.get(keys.run_key(archive.prefix, run), "run").header
    except (ObjectCorrupt, ObjectMissing):
        return
    yield from start.get("earlier", {}).items()
    if start["parent"] is not None:
        yield start["parent"]["key"], start["parent"]["digest"]


def _digest_at(archive: JobArchive, key: str) -> str | None:
    try:
        return unseal(key, archive.store.get(key)).digest
    except (ObjectCorrupt, ObjectMissing):
        return None


def _heads(archive: JobArchive) -> Iterator[str]:
    """The key with which each run's chain ends: its end's, else its last step's.

    A side run's step is named by its run's.
    """
    heads: dict[str, str] = {}
    for key in archive.store.list(f"{archive.prefix}/turns/"):
        place = keys.parse_turn_key(key)
        if place is not None and place.kind == "step":
            heads[place.run] = key
    for key in archive.store.list(f"{archive.prefix}/ends/"):
        heads[key.rpartition("/")[2]] = key
    # Ends were listed after steps on purpose: a run's end takes the place of its last step.
    yield from (heads[run] for run in sorted(heads) if not keys.is_side_run(unquote(run)))


def _of_run(
    archive: JobArchive,
    head: str,
    trusted: frozenset[str],
    witnesses: Sequence[StepRef],
    kept: Sequence[StepRef],
) -> RunAnchors:
    step = keys.parse_turn_key(head)
    run = step.run if step else head.rpartition("/")[2]
    try:
        archived = opened(head, archive.store.get(head), "step" if step else "end")
        turn = int(archived.header["turn"])
    except (ObjectCorrupt, ObjectMissing, KeyError, TypeError, ValueError):
        return RunAnchors(
            run=unquote(run), head=head, turn=step.turn if step else 0, ended=step is None
        )
    anchors = [
        *_history(archived, run, witnesses),
        *_lock(archive, archived),
        *_kept(archived, kept),
    ]
    untrusted = None
    if (key := _signed_by(archived)) is not None:
        name = fingerprint(key)
        if key in trusted:
            detail = f"by the key {name}"
            anchors.append(Anchor(kind=AnchorKind.SIGNATURE, whole=True, detail=detail))
        else:
            untrusted = name
    return RunAnchors(
        run=unquote(run),
        head=head,
        turn=turn,
        ended=step is None,
        anchors=tuple(anchors),
        untrusted=untrusted,
    )


def _signed_by(head: ArchivedObject) -> str | None:
    """The public key that signed an end; None if none did. ``examine_job`` reports a signature that
    is none of what the end says.
    """
    if head.header.get("signature") is None:
        return None
    signature = Signature.model_validate(head.header["signature"])
    return signature.public_key if is_valid(signature, signed_text(head.key, head.header)) else None


def _history(head: ArchivedObject, run: str, witnesses: Sequence[StepRef]) -> Iterator[Anchor]:
    if any(w.key == head.key and w.digest == head.digest for w in witnesses):
        yield Anchor(
            kind=AnchorKind.HISTORY, whole=True, detail="it holds the digest of the chain's head"
        )
        return
    places = (keys.parse_turn_key(witness.key) for witness in witnesses)
    turns = [place.turn for place in places if place is not None and place.run == run]
    if turns:
        detail = f"it holds the digests of {len(turns)} steps, the last of turn {max(turns)}"
        yield Anchor(kind=AnchorKind.HISTORY, whole=False, detail=detail)


def _kept(head: ArchivedObject, kept: Sequence[StepRef]) -> Iterator[Anchor]:
    if any((one.key, one.digest) == (head.key, head.digest) for one in kept):
        yield Anchor(
            kind=AnchorKind.KEPT_HEAD, whole=True, detail="it lists the digest of the chain's head"
        )


def _lock(archive: JobArchive, head: ArchivedObject) -> Iterator[Anchor]:
    if isinstance(archive.store, RetainingStore):
        until = archive.store.retained_until(head.key)
        # A lock that ran out vouches for nothing: the object may have been replaced since.
        if until is not None and until > datetime.now(UTC):
            yield Anchor(
                kind=AnchorKind.OBJECT_LOCK, whole=True, detail=f"until {until.isoformat()}"
            )
