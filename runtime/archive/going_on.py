"""Whether the record of a run can be gone on with, asked before anything is started from it."""

from __future__ import annotations

from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.recorded import TurnRecord, turn_record
from runtime.archive.without_model import origin_of
from runtime.base.errors import ObjectCorrupt


def check_goes_on(archive: JobArchive, run: str, first: int, last: int) -> None:
    """See that all can be read that another run needs which goes on after turn ``last`` of ``run``:
    that turn's prompt and context objects; and of the turns from ``first`` on, which it restores,
    prompts, replies, and what their statements and ticks had from the world.

    A run that was started would ask for them again and again, since waiting mends nothing.

    Raises:
        NotFound: if there is no such turn.
        ObjectCorrupt, ObjectMissing: for the first object that cannot be read.
    """
    for turn in range(first, last + 1):
        record = turn_record(archive, run, turn)
        # Not its whole layout, which takes longer with each turn: it is put together from these.
        _check(archive, "attempt", record.step.attempt.key, record.step.attempt.digest)
        origin_of(archive.store, record.step)
        after = record.after.effects if record.after is not None else _unnamed(archive, run, record)
        for key, digest in {**record.step.effects, **after}.items():
            _check(archive, "effect", key, digest)
    if last >= 1:
        parent = turn_record(archive, run, last).step.ref
        archive.layout(parent)
        archive.nodes(parent)


def _check(archive: JobArchive, kind: str, key: str, digest: str) -> None:
    """See that an object can be read, and is the one that is referred to by ``digest``, if that is
    known.
    """
    archived = archive.objects.get(key, kind)
    if digest not in {archived.digest, ""}:
        raise ObjectCorrupt(
            f"{key} has digest {archived.digest}, not {digest} by which it is referred to"
        )


def _unnamed(archive: JobArchive, run: str, record: TurnRecord) -> dict[str, str]:
    """What the last statement of a record has had, which nothing names yet, without digests."""
    turn = record.step.turn
    return {
        key: ""
        for span in archive.lineage.spans(run)
        if span.last is None or turn <= span.last
        for key in archive.store.list(keys.effects_in(span.prefix, turn))
    }
