"""Jobs that stand for many: one for each item of a file (``for_each``), for each combination of
values (``matrix``), so many of each (``count``).

What they stand for are jobs as if the file had written them out: what is wrong with one is told by
the line of the one that stands for it, and by that of its item.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runtime.base.errors import InputError
from runtime.base.places import expanded
from runtime.base.quoted import key_path
from runtime.jobsfile.items import Item, LinesOfItems, read_items
from runtime.jobsfile.messages import describe
from runtime.jobsfile.packed import Packed
from runtime.jobsfile.problems import Location, Origin, Problem, Problems, places
from runtime.jobsfile.templates import Template, unfit
from runtime.jobsfile.written.bounds import MAX_JOBS
from runtime.jobsfile.written.job import WrittenMany

NUMBER = "n"
"""The field in which jobs that ``count`` makes are numbered, from 1."""

_KEYS = ("for_each", "matrix", "count")


@dataclass(frozen=True)
class _Field:
    """The fields of one job, and the item that some of them are from."""

    fields: dict[str, Any]
    item: Item | None


class Expansion:
    """The jobs of one file, in its order, each with its index among all of them.

    Args:
        directory: the absolute directory that files of items are relative to.
        problems: takes what is wrong, and learns where each job comes from.
    """

    def __init__(self, directory: Path, problems: Problems) -> None:
        self._directory = directory
        self._problems = problems
        self._files: dict[str, Packed[Item]] = {}

    def jobs(self, raw: Sequence[Any]) -> Iterator[Any]:
        """The jobs that ``raw`` stands for, as they would be written out, one at a time."""
        # Of jobs that are all written out nothing need be noted: each stands where its index says.
        if not any(_is_many(job) for job in raw):
            yield from raw
            return
        made = 0
        for index, job in enumerate(raw):
            many = self._many(job, ("jobs", index)) if _is_many(job) else iter([(job, None)])
            for one, item in many:
                file, line = ("", 0) if item is None else (job["for_each"], item.line)
                # First of all: whoever checks the job tells by it on which line something is wrong.
                self._problems.origins.add(Origin(index, file, line))
                made += 1
                yield one
            # Each of several may be within the bound, and all of them together not.
            if made > MAX_JOBS:
                self._problems.add(("jobs",), too_many(made))
                return

    def _many(self, job: Mapping[str, Any], at: Location) -> Iterator[tuple[Any, Item | None]]:
        sets = self._sets(job, at)
        if sets is None:
            return
        template = Template({key: value for key, value in job.items() if key not in _KEYS})
        file = str(job.get("for_each", ""))
        # Gathered: a field that no item has is one mistake, not one for each of a million items.
        missing: dict[tuple[Location, str], list[Origin]] = {}
        for one in sets:
            # Of what is missing the file and line are told, and no index.
            item, place = one.item, Origin(0, file, one.item.line if one.item else 0)

            faults: list[tuple[Location, str]] = []
            filled = template.filled(one.fields, lambda *fault, to=faults: to.append(fault))
            for fault in faults:
                missing.setdefault(fault, []).append(place)
            if not faults:
                yield filled, item
        self._missing(missing, at)

    def _missing(self, missing: Mapping[tuple[Location, str], list[Origin]], at: Location) -> None:
        """Note the fields that items do not have, once for all of one kind."""
        problems = self._problems
        for (where, text), origins in missing.items():
            here = (*at, *where)
            told = places([origin for origin in origins if origin.file])
            problems.shared.add(
                Problem(
                    problems.lines.of(here),
                    key_path(here[problems.hidden :]),
                    f"{text} ({told})" if told else text,
                )
            )

    def _sets(self, job: Mapping[str, Any], at: Location) -> Iterator[_Field] | None:
        """The fields of each job; None where it cannot be said what they are."""
        written = {key: job[key] for key in _KEYS if key in job}
        try:
            many = WrittenMany.model_validate(written).model_dump(exclude_unset=True)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self._problems.add((*at, *detail["loc"]), describe(detail, WrittenMany))
            return None
        matrix: dict[str, list[Any]] = many.get("matrix", {})
        items = self._items(many["for_each"], (*at, "for_each")) if "for_each" in many else [None]
        faults = [(("matrix", name), fault) for name in matrix if (fault := unfit(name))]
        if "count" in many and NUMBER in matrix:
            faults.append((("matrix", NUMBER), f"'count' has the field {NUMBER!r} too"))
        for where, fault in faults:
            self._problems.add((*at, *where), fault)
        if items is None or faults:
            return None
        times = many.get("count", 1)
        # Before any is made: a matrix of a few lines may stand for billions.
        total = len(items) * times * math.prod(len(values) for values in matrix.values())
        if total > MAX_JOBS:
            self._problems.add(at, too_many(total))
            return None
        others = {*matrix} | ({NUMBER} if "count" in many else set())
        if clash := sorted(_names_of(items, others)):
            self._problems.add(at, f"the field {clash[0]!r} is one of the items' too")
            return None
        return self._product(items, matrix, range(1, times + 1) if "count" in many else None)

    def _product(
        self, items: Sequence[Any], matrix: Mapping[str, list[Any]], numbers: range | None
    ) -> Iterator[_Field]:
        for item in items:
            for values in itertools.product(*matrix.values()):
                own = {**(item.fields if item else {}), **dict(zip(matrix, values, strict=True))}
                # Innermost, so that the repetitions of one combination stand beside each other.
                for number in numbers or (None,):
                    yield _Field(own if number is None else {**own, NUMBER: number}, item)

    def _items(self, name: str, at: Location) -> Packed[Item] | None:
        """The items of a file; None, which is noted, if there are none to be had."""
        if name not in self._files:
            # Hidden are "items" and the line, which stands in front of the error anyway.
            own = Problems(name, LinesOfItems(), hidden=2)
            self._problems.items.append(own)
            try:
                path = Path(os.path.normpath(self._directory / expanded(name)))
                self._files[name] = read_items(path, own)
            except InputError as error:
                self._problems.add(at, str(error))
                return None
        return self._files[name]


def too_many(count: int) -> str:
    """What is said of more jobs than a file may have."""
    return f"expected at most {MAX_JOBS} jobs, got {count}; split the batch"


def _is_many(job: Any) -> bool:
    return isinstance(job, dict) and any(key in job for key in _KEYS)


def _names_of(items: Sequence[Item | None], others: set[str]) -> set[str]:
    """Those of the ``others`` that are fields of items too."""
    # Without these no item need be unpacked.
    if not others:
        return set()
    return {name for item in items if item is not None for name in others & item.fields.keys()}
