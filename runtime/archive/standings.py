"""How a job stands by its archive: how its newest run ended, or how far it came."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from runtime.archive.catalog import all_jobs
from runtime.archive.forms import End, Step
from runtime.archive.gaps import UNREADABLE, Readable, named_gap, readable, unknown_starts
from runtime.archive.handed import told_patch
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.tombstones import half_deleted
from runtime.archive.reading import read_ahead
from runtime.archive.replays import claimed_orders
from runtime.archive.stores import ObjectStore
from runtime.base.errors import NotFound, ObjectCorrupt
from runtime.base.standings import DAMAGED, OPEN
from runtime.base.values import JobKey

_SUB_JOB = re.compile(r"\.[0-9a-f]{10}$")
"""How the names of sub-jobs end (``workflows/sub_jobs.py``)."""

_PARENT_CHARS = 80
"""As many characters of their parents' names they have at most, before that."""

T = TypeVar("T")


@dataclass(frozen=True)
class ArchivedStanding:
    """How a job stands. ``end`` is that of its newest run, None while it is open.

    ``damaged`` are the objects that cannot be read, and what is wrong with each.
    """

    key: JobKey
    run: str | None
    status: str
    reason: str = ""
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    end: End | None = None
    damaged: tuple[str, ...] = ()
    parent: str = ""
    """The job of the same batch whose sub-job it is."""
    retries: int = 0
    """How often it was begun anew."""


@dataclass(frozen=True)
class ResultRow:
    """What came of a job, as a row of ``holdfast results``.

    ``patch`` tells of the one that was handed over with the result. ``seconds`` is from the first
    call of the newest run's timeline to its end, None while that is open. ``retries`` counts how
    often the job was begun anew, ``parent`` is the job whose sub-job it is. ``score`` and
    ``remarks`` are its check's, if it has one.
    """

    batch: str
    id: str
    status: str
    reason: str = ""
    result: Any = None
    patch: dict[str, Any] | None = None
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float | None = None
    model: str | None = None
    score: float | None = None
    remarks: str = ""
    retries: int = 0
    parent: str = ""
    run: str | None = None
    damaged: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Below:
    """What the sub-jobs of a job used together."""

    jobs: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def and_one(self, standing: ArchivedStanding) -> Below:
        """With one more."""
        cost = round(self.cost_usd + standing.cost_usd, 9)
        return Below(self.jobs + 1, self.tokens + standing.tokens, cost)


def standing_of(archive: JobArchive) -> ArchivedStanding:
    """How the job stands, by its newest run; ``damaged`` if what tells it cannot be read.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    runs = archive.runs_that_called()
    run = next(iter(runs[-1:]), None)
    unknown = tuple(map(str, unknown_starts(archive, runs)))
    # Only then are all starts read.
    retries = len(begun_anew(archive)) if len(runs) > 1 else 0
    try:
        end = archive.end_without_calls()
        if end is not None:
            run = end.run
        elif run is not None:
            end = archive.end(run)
    except ObjectCorrupt as error:
        return _open(archive, run, retries, *unknown, str(named_gap(error)))
    if end is None:
        return _open(archive, run, retries, *unknown)
    parent, problem = _parent_or_problem(archive)
    problem = (*unknown, *problem)
    return ArchivedStanding(
        key=archive.job,
        run=run,
        status=DAMAGED if problem else end.status,
        reason=end.reason,
        turns=end.turns,
        tokens=end.usage.total,
        cost_usd=end.cost_usd,
        end=end,
        damaged=problem,
        parent=parent,
        retries=retries,
    )


def spent_below(
    store: ObjectStore, batch: str, jobs: Collection[str]
) -> tuple[dict[str, Below], list[JobKey]]:
    """What the sub-jobs of ``jobs`` of a batch used, at any depth, by job; and the sub-jobs that
    cannot be read, which may be some of theirs.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    may_be = [key for key in all_jobs(store, batch) if _may_be_below(key.job, jobs)]
    unreadable: list[JobKey] = []
    parents: dict[str, str] = {}
    for key, parent in zip(
        may_be, read_ahead(may_be, partial(_read, store, parent_of)), strict=True
    ):
        if parent is None:
            unreadable.append(key)
        elif parent:
            parents[key.job] = parent
    tops = {key: _top_of(key.job, parents) for key in may_be if key.job in parents}
    below = [key for key, top in tops.items() if top in jobs]
    spent: defaultdict[str, Below] = defaultdict(Below)
    for key, standing in zip(
        below, read_ahead(below, partial(_read, store, standing_of)), strict=True
    ):
        if standing is None or (standing.status == DAMAGED and not standing.turns):
            unreadable.append(key)
        else:
            spent[tops[key]] = spent[tops[key]].and_one(standing)
    return dict(spent), unreadable


def _may_be_below(name: str, jobs: Collection[str]) -> bool:
    """Whether a job may by its name be a sub-job of one of ``jobs``, at any depth."""
    above = name
    while (digest := _SUB_JOB.search(above)) is not None:
        above = above[: digest.start()]
        # The name of a parent that is longer is cut.
        if above in jobs or len(above) >= _PARENT_CHARS:
            return True
    return False


def _top_of(job: str, parents: dict[str, str]) -> str:
    """The job above a sub-job that is none itself."""
    while job in parents:
        job = parents[job]
    return job


def _read(store: ObjectStore, read: Callable[[JobArchive], T], key: JobKey) -> T | None:
    """``read`` of a job; None where an object of it cannot be read."""
    with suppress(*UNREADABLE):
        return read(JobArchive.of(store, key))
    return None


def parent_of(archive: JobArchive) -> str:
    """The job of the same batch whose sub-job this is; empty if it is none.

    Only names that a sub-job may have are looked up.
    """
    if _SUB_JOB.search(archive.job.job) is None:
        return ""
    return str((archive.definition() or {}).get("parent", ""))


def _parent_or_problem(archive: JobArchive) -> tuple[str, tuple[str, ...]]:
    """Whose sub-job it is, and why nobody knows."""
    try:
        return parent_of(archive), ()
    except UNREADABLE as error:
        return "", (str(error),)


def _patch_or_problem(
    archive: JobArchive, end: End | None
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What is told of the patch, and why its text is not."""
    try:
        return told_patch(archive, end), ()
    except (*UNREADABLE, NotFound) as error:
        return None, (str(error),)


def begun_anew(archive: JobArchive) -> list[str]:
    """The runs that began the job anew, oldest first. One that was taken back to its first turn, or
    went on from there out of the archive as it was lost, did not.
    """
    taken_back = claimed_orders(archive, [])
    return [run for run in archive.beginnings()[1:] if run not in taken_back]


def result_row(archive: JobArchive) -> ResultRow:
    """What came of the job.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    standing = standing_of(archive)
    patch, problem = _patch_or_problem(archive, standing.end)
    return ResultRow(
        batch=standing.key.batch,
        id=standing.key.job,
        status=DAMAGED if problem else standing.status,
        reason=standing.reason,
        result=standing.end.result if standing.end is not None else None,
        patch=patch,
        turns=standing.turns,
        tokens=standing.tokens,
        cost_usd=standing.cost_usd,
        seconds=_seconds(archive, standing),
        model=_model(archive),
        score=standing.end.score if standing.end is not None else None,
        remarks=standing.end.remarks if standing.end is not None else "",
        retries=standing.retries,
        parent=standing.parent,
        run=standing.run,
        damaged=(*standing.damaged, *problem),
    )


def _open(archive: JobArchive, run: str | None, retries: int, *hiding: str) -> ArchivedStanding:
    """A job without an end that can be read: what its steps tell. What is ``hiding`` how it stands
    makes it damaged.
    """
    problems = list(hiding)
    held: Readable | None = None
    try:
        held = readable(archive, run) if run else None
        problems += map(str, held.gaps if held else ())
    # The start of the run: nobody knows which turns are its own.
    except ObjectCorrupt as error:
        problems.append(str(named_gap(error)))
    steps: list[Step] = held.steps if held else []
    parent, unknown = _parent_or_problem(archive)
    return ArchivedStanding(
        key=archive.job,
        run=run,
        status=DAMAGED if hiding or unknown or (problems and held is None) else OPEN,
        # It may have ended: its end is what goes first.
        reason=half_deleted(archive.store, archive.job),
        turns=steps[-1].turn if steps else 0,
        tokens=sum(step.usage.total + step.failed_attempts.usage.total for step in steps),
        cost_usd=round(sum(step.cost_usd + step.failed_attempts.cost_usd for step in steps), 9),
        damaged=tuple(dict.fromkeys((*problems, *unknown))),
        parent=parent,
        retries=retries,
    )


def _seconds(archive: JobArchive, standing: ArchivedStanding) -> float | None:
    if standing.end is None or not standing.end.ended_at or standing.run is None:
        return None
    try:
        began = archive.began_at(standing.run)
    except ObjectCorrupt:
        return None
    if not began:
        return 0.0
    end, start = (datetime.fromisoformat(at) for at in (standing.end.ended_at, began))
    # Two machines' clocks may disagree.
    return round(max((end - start).total_seconds(), 0.0), 3)


def _model(archive: JobArchive) -> str | None:
    try:
        model = (archive.definition() or {}).get("model")
    except ObjectCorrupt:
        return None
    return str(model.get("name")) if isinstance(model, dict) else model
