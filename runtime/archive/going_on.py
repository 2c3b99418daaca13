"""Whether the record of a run can be gone on with, asked before anything is started from it."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.archive import keys
from runtime.archive.container import referred
from runtime.archive.job import JobArchive
from runtime.archive.recorded import turn_record
from runtime.archive.without_model import origin_of


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
        attempt = record.step.attempt
        referred(archive.objects.get(attempt.key, "attempt"), attempt.digest)
        origin_of(archive.store, record.step)
        named = record.step.effects | (record.after.effects if record.after is not None else {})
        for key, digest in named.items():
            referred(archive.objects.get(key, "effect"), digest)
        if record.after is None:
            for key in _unnamed(archive, run, turn):
                archive.objects.get(key, "effect")
    if last >= 1:
        parent = turn_record(archive, run, last).step.ref
        archive.layout(parent)
        archive.nodes(parent)


def _unnamed(archive: JobArchive, run: str, turn: int) -> Iterator[str]:
    """What the last statement of a record has had, which nothing names yet."""
    for span in archive.lineage.spans(run):
        if span.last is None or turn <= span.last:
            yield from archive.store.list(keys.effects_in(span.prefix, turn))
