"""All that is wrong with one jobs file, and the one error that says it."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from runtime.base.errors import InputError
from runtime.base.quoted import key_path

Location = tuple[str | int, ...]
"""The way to a value: ``("jobs", 1, "budget", "wall")``."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong: at which 1-based line, of which key, and what was expected."""

    line: int
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one of the jobs comes from that one in the file stands for: that one's place among the
    jobs, and the item's file and line, where there is one.
    """

    index: int
    file: str = ""
    line: int = 0


class Origins:
    """Where each of the jobs comes from that the file has not written out, by its index: sixteen
    bytes a job.
    """

    def __init__(self) -> None:
        self._indices = array("L")
        self._lines = array("L")
        self._files: dict[int, str] = {}

    def add(self, origin: Origin) -> None:
        """That of the next job."""
        self._indices.append(origin.index)
        self._lines.append(origin.line)
        if origin.file:
            self._files[origin.index] = origin.file

    def of(self, job: int) -> Origin | None:
        """That of a job; None if the file has written it out, or it is not known yet."""
        if job >= len(self._indices):
            return None
        index, line = self._indices[job], self._lines[job]
        return Origin(index, self._files[index] if line else "", line)


@dataclass
class Lines:
    """The 1-based line of each key and list item that a file spells out."""

    by_location: dict[Location, int] = field(default_factory=dict)
    of_items: array[int] = field(default_factory=lambda: array("L"))
    """The lines of a file that has one job a line, in their order."""

    def of(self, location: Location) -> int:
        """The line of ``location``, or of the innermost part of it that is in the file."""
        if len(location) > 1 and isinstance(location[1], int) and location[1] < len(self.of_items):
            return self.of_items[location[1]]
        while location and location not in self.by_location:
            location = location[:-1]
        return self.by_location.get(location, 1)


@dataclass
class Problems:
    """The problems found so far in the file that the user named ``file``."""

    file: str
    lines: Lines = field(default_factory=Lines)
    hidden: int = 0
    """How many leading parts of a location are not shown: two for JSONL, where the line says which
    job it is.
    """
    by_location: dict[Location, Problem] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    shared: set[Problem] = field(default_factory=set)
    """What is wrong with jobs that stand for many, and was told of all the jobs at once."""
    items: list[Problems] = field(default_factory=list)
    """What is wrong with the files of items that this one names."""

    def add(self, location: Location, text: str) -> None:
        """Note that the value at ``location`` is wrong. The first note on a location stands."""
        at = self.in_file(location)
        problem = Problem(self.lines.of(at), key_path(at[self.hidden :]), text)
        self.by_location.setdefault(location, problem)

    def in_file(self, location: Location) -> Location:
        """Where the file has what ``location`` names: a job that another stands for is there."""
        origin = self._origin(location)
        return location if origin is None else ("jobs", origin.index, *location[2:])

    def has(self, location: Location) -> bool:
        """Whether the file spells ``location`` out."""
        return self.in_file(location) in self.lines.by_location

    def _origin(self, location: Location) -> Origin | None:
        if location[:1] != ("jobs",) or len(location) < 2 or not isinstance(location[1], int):
            return None
        return self.origins.of(location[1])

    def raise_if_any(self) -> None:
        """Raise every problem, a line each, by line.

        Raises:
            InputError: if there is any.
        """
        told = [line for one in (self, *self.items) for line in one.lines_told()]
        if told:
            raise InputError("\n".join(told))

    def lines_told(self) -> list[str]:
        """A line for each problem; one for all the items of one job that share it."""
        shared: dict[Problem, list[Origin]] = {problem: [] for problem in self.shared}
        for location, problem in self.by_location.items():
            origin = self._origin(location)
            shared.setdefault(problem, []).extend([origin] if origin and origin.file else [])
        return [self._told(problem, shared[problem]) for problem in sorted(shared)]

    def _told(self, problem: Problem, origins: list[Origin]) -> str:
        parts = [f"{self.file}:{problem.line}", problem.key, problem.text]
        told = ": ".join(part for part in parts if part)
        return f"{told} ({places(origins)})" if origins else told


def places(origins: list[Origin]) -> str:
    """The items as ``items.jsonl:3, 5-9``."""
    files: dict[str, list[int]] = {}
    for origin in origins:
        files.setdefault(origin.file, []).append(origin.line)
    return ", ".join(f"{file}:{_ranges(sorted(set(lines)))}" for file, lines in files.items())


def _ranges(lines: list[int]) -> str:
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    return ", ".join(str(one) if one == last else f"{one}-{last}" for one, last in spans)


def unknown_key(key: str, known: Iterable[str], *, elsewhere: str) -> str:
    """The text for an unknown key: the nearest known one, else where it belongs, else all that are
    known.
    """
    known = list(known)
    if elsewhere:
        return f"unknown key here; {elsewhere}"
    close = nearest(key, known)
    if close is not None:
        return f"unknown key; did you mean {close!r}?"
    return f"unknown key; expected one of {', '.join(known)}"


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key that ``key`` is most likely a misspelling of, if any."""
    return next(iter(difflib.get_close_matches(key, list(known), n=1)), None)
