"""Why the jobs of a batch ended without success, by cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.archive import keys
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.notices import notices
from runtime.archive.standings import standing_of
from runtime.archive.stores import ObjectStore
from runtime.base.kinds_of_error import kind_of_error, turn_of_error
from runtime.base.plurals import counted
from runtime.base.standings import DAMAGED, OPEN
from runtime.base.values import JobKey


@dataclass(frozen=True)
class Failing:
    """Something that went wrong in a job: how the job ended, or ``call`` if one attempt at a model
    call failed, and the turn of it.
    """

    key: JobKey
    turn: int
    status: str
    reason: str
    kind: str

    @property
    def command(self) -> str:
        """What to look at it with."""
        if self.status == CALL:
            return f"holdfast show {self.key}@{self.turn} --part attempts"
        if self.status == UNTOLD:
            return f"holdfast results {self.key.batch}"
        if self.status == DAMAGED:
            return f"holdfast verify {self.key}"
        return f"holdfast show {self.key}@{self.turn}" if self.turn else f"holdfast log {self.key}"


CALL = "call"
"""In the place of a status: an attempt at a model call failed."""

UNTOLD = "untold"
"""In the place of a status: ``on_finish`` could not be told of an end."""


@dataclass
class FailureGroup:
    """What failed for one cause: how many times, in how many jobs, and the first of it.

    ``statuses`` counts the jobs by how they ended.
    """

    kind: str
    example: Failing
    count: int = 0
    jobs: int = 0
    statuses: dict[str, int] = field(default_factory=dict)


def ends_in_failure(archive: JobArchive) -> Iterator[Failing]:
    """How the job's newest run ended, if without success, or why nobody knows."""
    standing = standing_of(archive)
    if standing.status == DAMAGED:
        reason = standing.damaged[0] if standing.damaged else "its end cannot be read"
        yield _failing(standing.key, 0, DAMAGED, reason)
    elif standing.status not in {OPEN, "succeeded"}:
        turn = _turn_shown(archive, turn_of_error(standing.reason) or standing.turns)
        yield _failing(standing.key, turn, standing.status, standing.reason or standing.status)


def _turn_shown(archive: JobArchive, turn: int) -> int:
    """The turn, or the one before, that ``show`` has: a job may end before a turn's call, for which
    its budget has no room. 0 if it has neither.
    """
    run = next(reversed(archive.runs_that_called()), None)
    if run is None:
        return 0
    try:
        return next((one for one in (turn, turn - 1) if one and archive.has_turn(run, one)), 0)
    except UNREADABLE:
        return turn


def failed_calls(archive: JobArchive) -> Iterator[Failing]:
    """The attempts at model calls that failed, in all runs of the job, whatever came of it."""
    # Of a pack that cannot be read no attempt is listed.
    for key in archive.store.list(f"{archive.prefix}/packs/"):
        yield _failing(archive.job, 0, DAMAGED, f"{key} cannot be read")
    for key in archive.store.list(f"{archive.prefix}/turns/"):
        place = keys.parse_turn_key(key)
        if place is None or place.kind != "failure":
            continue
        try:
            header = archive.objects.get(key, "failure").header
        except UNREADABLE:
            yield _failing(archive.job, 0, DAMAGED, f"{key} cannot be read")
            continue
        reason = f"{header['error_type']}: {header['error_message']}"
        yield _failing(archive.job, place.turn, CALL, reason)


def untold(store: ObjectStore, batch: str, unreadable: list[str]) -> Iterator[Failing]:
    """The ends of a batch's jobs, and its own, that ``on_finish`` did not hear of; ``unreadable``
    gets what is wrong with notices that may tell of more.
    """
    for notice in notices(store, batch, unreadable):
        if not notice.heard:
            key = JobKey(batch=batch, job=notice.job)
            said = f"on_finish was not told after {counted(notice.tries, 'try', 'tries')}"
            reason = f"{said}: {notice.to}: {notice.error}"
            yield _failing(key, 0, UNTOLD, reason)


def grouped(failing: Iterator[Failing]) -> list[FailureGroup]:
    """The causes, the most frequent first. Of each, one failure is kept."""
    groups: dict[str, FailureGroup] = {}
    last: dict[str, JobKey] = {}
    for one in failing:
        group = groups.setdefault(one.kind, FailureGroup(one.kind, one))
        group.count += 1
        # A job's failures come one after the other: another name is another job.
        if last.get(one.kind) != one.key:
            last[one.kind] = one.key
            group.jobs += 1
        group.statuses[one.status] = group.statuses.get(one.status, 0) + 1
    return sorted(groups.values(), key=lambda group: (-group.count, group.kind))


def _failing(key: JobKey, turn: int, status: str, reason: str) -> Failing:
    return Failing(key, turn, status, reason, kind_of_error(reason, str(key), key.job))
