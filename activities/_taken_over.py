"""The effects of a statement that another run goes on with: what the record has of them stands in
that run's archive too, which finds it as an attempt finds what a killed worker left.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from activities._once import CLAIMS
from runtime.archive import keys
from runtime.archive.approvals import DECISIONS, QUESTIONS
from runtime.archive.job import JobArchive
from runtime.base.values import JobKey


def take_over(archive: JobArchive, run: str, turn: int, job: JobKey, into: str) -> None:
    """Archive for the run ``into`` of ``job`` what the record ``run`` has of the statement of
    ``turn``: of each call with a result or a claim both, and the person's answer to it.

    Of the call after these the question alone: a person is asked again, and may have answered in
    the meantime.
    """
    own, store = JobArchive.of(archive.store, job), archive.store
    listed: dict[int, str] = {}
    for prefix in _prefixes(archive, run, turn):
        for key in store.list(keys.effects_in(prefix, turn)):
            place = keys.parse_turn_key(key)
            if place is not None:
                listed[place.number] = key
    for effect in itertools.count():
        made = {effect, CLAIMS + effect} & listed.keys()
        for kind in (0, CLAIMS, QUESTIONS, DECISIONS) if made else (QUESTIONS,):
            if kind + effect in listed:
                kept = archive.objects.get(listed[kind + effect], "effect")
                texts = {name: kept.frame(name) for name in kept.names}
                uses = kept.header.get("uses", {})
                own.write_effect(into, turn, kind + effect, dict(kept.header["value"]), uses, texts)
        if not made:
            return


def _prefixes(archive: JobArchive, run: str, turn: int) -> Iterator[str]:
    """Where the statement of a turn ran: in the run that has the turn, and in those that go on
    after it, the newest last. What ran before was another statement.
    """
    for span in archive.lineage.spans(run):
        if span.first - 1 <= turn and (span.last is None or turn <= span.last):
            yield span.prefix
