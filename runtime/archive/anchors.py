"""What outside the archive vouches for a run's chain: Temporal's history, a signature by a trusted key, or object lock.

Without any of these a chain is self-attested: it shows that nothing was altered by accident, and not that nobody wrote
the whole of it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, unseal
from runtime.archive.headers import signed_text
from runtime.archive.job import JobArchive
from runtime.archive.records import Signature
from runtime.archive.signing import fingerprint, is_valid
from runtime.errors import ObjectCorrupt, ObjectMissing
from runtime.values import StepRef, Value


class AnchorKind(StrEnum):
    """What vouches for a chain."""

    HISTORY = "temporal-history"
    SIGNATURE = "signature"
    OBJECT_LOCK = "object-lock"


class Anchor(Value):
    """One thing that vouches for a run's chain: for the ``whole`` of it, or for what stands before its last objects."""

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


@runtime_checkable
class RetainingStore(Protocol):
    """A store that can say until when an object can neither be overwritten nor removed."""

    def retained_until(self, key: str) -> datetime | None:
        """When the object's retention ends; None if it has none."""
        ...


def run_anchors(archive: JobArchive, trusted: frozenset[str], witnesses: Sequence[StepRef] = ()) -> list[RunAnchors]:
    """What vouches for each run. ``witnesses`` are what Temporal's history holds of it.

    An object that is damaged vouches for nothing; ``verify_job`` reports it.
    """
    return [_of_run(archive, head, trusted, witnesses) for head in _heads(archive)]


def _heads(archive: JobArchive) -> Iterator[str]:
    """The key with which each run's chain ends: its end's, else its last step's. A side run's step is named by its run's."""
    heads: dict[str, str] = {}
    for key in archive.store.list(f"{archive.prefix}/turns/"):
        found = keys.parse_turn_key(key)
        if found is not None and found.kind == "step":
            heads[found.run] = key
    for key in archive.store.list(f"{archive.prefix}/ends/"):
        heads[key.rpartition("/")[2]] = key
    yield from (heads[run] for run in sorted(heads) if not keys.is_side_run(unquote(run)))


def _of_run(archive: JobArchive, head: str, trusted: frozenset[str], witnesses: Sequence[StepRef]) -> RunAnchors:
    found = keys.parse_turn_key(head)
    run = found.run if found else head.rpartition("/")[2]
    try:
        archived = unseal(head, archive.store.get(head), "step" if found else "end")
        turn = int(archived.header["turn"])
    except (ObjectCorrupt, ObjectMissing, KeyError, TypeError, ValueError):
        return RunAnchors(run=unquote(run), head=head, turn=found.turn if found else 0, ended=found is None)
    anchors = [*_history(archived, run, witnesses), *_lock(archive, archived)]
    untrusted = None
    if archived.header.get("signature") is not None:
        signature = Signature.model_validate(archived.header["signature"])
        name = fingerprint(signature.public_key)
        if signature.public_key not in trusted:
            untrusted = name
        elif is_valid(signature, signed_text(head, archived.header)):
            anchors.append(Anchor(kind=AnchorKind.SIGNATURE, whole=True, detail=f"by the key {name}"))
    return RunAnchors(
        run=unquote(run), head=head, turn=turn, ended=found is None, anchors=tuple(anchors), untrusted=untrusted
    )


def _history(head: ArchivedObject, run: str, witnesses: Sequence[StepRef]) -> Iterator[Anchor]:
    if any(w.key == head.key and w.digest == head.digest for w in witnesses):
        yield Anchor(kind=AnchorKind.HISTORY, whole=True, detail="it holds the digest of the chain's head")
        return
    places = (keys.parse_turn_key(witness.key) for witness in witnesses)
    turns = [place.turn for place in places if place is not None and place.run == run]
    if turns:
        detail = f"it holds the digests of {len(turns)} steps, the last of turn {max(turns)}"
        yield Anchor(kind=AnchorKind.HISTORY, whole=False, detail=detail)


def _lock(archive: JobArchive, head: ArchivedObject) -> Iterator[Anchor]:
    if isinstance(archive.store, RetainingStore):
        until = archive.store.retained_until(head.key)
        if until is not None and until > datetime.now(UTC):
            yield Anchor(kind=AnchorKind.OBJECT_LOCK, whole=True, detail=f"until {until.isoformat()}")
