"""``holdfast compare BATCH1 BATCH2``: the same jobs in two batches, paired by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.base.errors import InputError
from runtime.base.paired import Paired, paired
from runtime.base.plurals import counted
from runtime.base.standings import DAMAGED, OPEN
from runtime.cli.output import json_document, say

if TYPE_CHECKING:
    from runtime.archive.standings import ResultRow
    from runtime.archive.stores import ObjectStore

MEASURES = ("score", "succeeded", "cost_usd", "tokens", "turns", "seconds")
NAMED = 8
"""So many ids are named one by one."""


@dataclass
class Comparison:
    """Two batches side by side.

    ``measured`` has, by measure, its values in both, a pair a job; ``better`` and ``worse`` are the
    jobs that succeeded in the second alone, and in the first alone. ``only`` are how many jobs the
    one and the other has alone, ``unfinished`` those that have not ended in both.
    """

    batches: tuple[str, str]
    pairs: int = 0
    only: tuple[int, int] = (0, 0)
    unfinished: int = 0
    measured: dict[str, tuple[list[float], list[float]]] = field(
        default_factory=lambda: {name: ([], []) for name in MEASURES}
    )
    better: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)

    def add(self, first: ResultRow, second: ResultRow, unscored: float | None) -> None:
        """A job of both."""
        if {first.status, second.status} & {OPEN, DAMAGED}:
            self.unfinished += 1
            return
        self.pairs += 1
        for name, (ones, others) in self.measured.items():
            pair = (_value(first, name, unscored), _value(second, name, unscored))
            if pair[0] is not None and pair[1] is not None:
                ones.append(pair[0])
                others.append(pair[1])
        if first.status != second.status and "succeeded" in {first.status, second.status}:
            (self.better if second.status == "succeeded" else self.worse).append(first.id)

    def measures(self) -> dict[str, Paired]:
        """Each measure that both have of some job."""
        by_name = {name: paired(*values) for name, values in self.measured.items()}
        return {name: one for name, one in by_name.items() if one is not None}


def is_batch(objects: ObjectStore, name: str) -> bool:
    """Whether the archive has a batch of exactly that name."""
    from runtime.archive.catalog import all_jobs

    return "/" not in name and bool(all_jobs(objects, name))


def compare_batches(
    objects: ObjectStore, first: str, second: str, *, unscored: float | None, json: bool
) -> None:
    """Compare, and tell.

    Raises:
        InputError: if no job is in both.
    """
    from runtime.archive.catalog import all_jobs

    ids = [{key.job for key in all_jobs(objects, batch)} for batch in (first, second)]
    both = sorted(ids[0] & ids[1])
    if not both:
        raise InputError(f"no job of batch {first!r} has the id of one of batch {second!r}")
    comparison = Comparison((first, second), only=(len(ids[0] - ids[1]), len(ids[1] - ids[0])))
    for one, other in zip(_rows(objects, first, both), _rows(objects, second, both), strict=True):
        comparison.add(one, other, unscored)
    if json:
        json_document(_document(comparison))
    else:
        for line in _lines(comparison):
            say(line)


def _rows(objects: ObjectStore, batch: str, ids: list[str]) -> Iterator[ResultRow]:
    from runtime.archive.job import JobArchive
    from runtime.archive.reading import read_ahead
    from runtime.archive.standings import result_row

    return read_ahead(ids, lambda id: result_row(JobArchive(objects, batch, id)))


def _value(row: ResultRow, name: str, unscored: float | None) -> float | None:
    if name == "succeeded":
        return float(row.status == "succeeded")
    if name == "score":
        return unscored if row.score is None else row.score
    value = getattr(row, name)
    return None if value is None else float(value)


def _document(comparison: Comparison) -> dict[str, Any]:
    measures = {name: asdict(one) for name, one in comparison.measures().items()}
    for one in measures.values():
        one["means"] = list(one["means"])
    return {
        "batches": list(comparison.batches),
        "pairs": comparison.pairs,
        "only": list(comparison.only),
        "unfinished": comparison.unfinished,
        "measures": measures,
        "better": comparison.better,
        "worse": comparison.worse,
    }


def _lines(comparison: Comparison) -> Iterator[str]:
    first, second = comparison.batches
    yield f"{counted(comparison.pairs, 'job')} that ended in both {first} and {second}"
    if any(comparison.only) or comparison.unfinished:
        yield (
            f"left out: {comparison.only[0]:,} of {first} alone,"
            f" {comparison.only[1]:,} of {second} alone,"
            f" {comparison.unfinished:,} that have not ended in both"
        )
    yield f"{'':<10}{'pairs':>7}{first[:13]:>14}{second[:13]:>14}{'difference':>14}   95 %"
    for name, one in comparison.measures().items():
        numbers = (*one.means, one.difference)
        bounds = (
            f"   {one.low:+,.4g} to {one.high:+,.4g}, p {one.p:.3g}"
            if one.low is not None and one.high is not None and one.p is not None
            else ""
        )
        cells = "".join(
            f"{number:>+14,.4g}" if place == 2 else f"{number:>14,.4g}"
            for place, number in enumerate(numbers)
        )
        yield f"{name:<10}{one.pairs:>7,}{cells}{bounds}"
    for batch, ids in ((second, comparison.better), (first, comparison.worse)):
        if ids:
            named = ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")
            yield f"{counted(len(ids), 'job')} succeeded in {batch} alone: {named}"
