"""Finding the workspace's files by a pattern, within bounds, in the same order at every call."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from runtime.base.host_trouble import host_trouble
from runtime.workspace.walk import escape_name

MAX_FOUND = 20_000
"""Files of one pattern that are listed, and the entries after which no further directory is looked
into.
"""
MAX_VISITED = 200_000

MAX_PARTS = 32


@dataclass(frozen=True)
class Listed:
    """An entry of a directory: its escaped name, what it is (links followed, inside), its size and
    time of change (ns).
    """

    name: str
    is_dir: bool
    is_file: bool
    is_link: bool
    size: int
    modified: int


class Listing(Protocol):
    """What a glob needs of the workspace."""

    def entries(self, path: str) -> list[Listed]:
        """The entries of a directory, sorted by name."""
        ...


def listed_entries(directory: int, bound: int, path: str) -> list[Listed]:
    """The entries of the open ``directory``, sorted by raw name. Links are not followed here.

    Raises:
        OSError: if there are more than ``bound``.
    """
    listed: list[tuple[bytes, Listed]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if len(listed) >= bound:
                raise OSError(
                    errno.EFBIG,
                    f"More than {bound:,} entries; use a pattern, or a smaller directory",
                    path,
                )
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # it went while the directory was read
            mode = status.st_mode
            link, name = stat.S_ISLNK(mode), escape_name(entry.name)
            shown = Listed(
                name,
                stat.S_ISDIR(mode),
                stat.S_ISREG(mode),
                link,
                status.st_size,
                status.st_mtime_ns,
            )
            listed.append((os.fsencode(entry.name), shown))
    return [shown for _, shown in sorted(listed, key=lambda pair: pair[0])]


@dataclass(frozen=True)
class Matches:
    """The files that match a pattern, with their paths: the first of them, and how many there are
    more.

    ``whole`` is false where not all entries were looked at: then there may be more still.
    """

    files: list[tuple[str, Listed]]
    left_out: int = 0
    whole: bool = True


def globbed(workspace: Listing, pattern: str) -> Matches:
    """The files that match ``pattern``, each with its path, in the order of the paths' parts.

    ``*``, ``?`` and ``[...]`` match within one name, ``**`` any number of directories. A name that
    begins with a dot is matched only by a part that does, and no directory is entered through a
    link by ``**``.

    Raises:
        OSError: if a directory has too many entries to be listed.
        ValueError: for a pattern that no search can follow.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if len(parts) > MAX_PARTS or ".." in parts[1:] or pattern.startswith("/"):
        raise ValueError(
            f"a pattern is relative to the workspace and has at most {MAX_PARTS} parts: {pattern!r}"
        )
    search = _Search(workspace)
    matches: dict[str, Listed] = {}
    left_out = 0
    for path, entry in search.beneath("", parts):
        if len(matches) < MAX_FOUND or path in matches:
            matches[path] = entry
        else:
            left_out += 1
    return Matches(list(matches.items()), left_out, search.visited <= MAX_VISITED)


@dataclass
class _Search:
    workspace: Listing
    visited: int = 0

    def beneath(self, place: str, parts: Sequence[str]) -> Iterator[tuple[str, Listed]]:
        """The files beneath ``place`` that match ``parts``."""
        part, rest = parts[0], parts[1:]
        # It stands for no directory, too.
        if part == "**" and rest:
            yield from self.beneath(place, rest)
        for entry in self._entries(place):
            path = f"{place}/{entry.name}" if place else entry.name
            if part == "**":
                if entry.is_dir and not entry.is_link and not entry.name.startswith("."):
                    yield from self.beneath(path, parts)
                if not rest and entry.is_file and not entry.name.startswith("."):
                    yield path, entry
            elif _matches(entry.name, part):
                if rest and entry.is_dir:
                    yield from self.beneath(path, rest)
                elif not rest and entry.is_file:
                    yield path, entry

    def _entries(self, place: str) -> list[Listed]:
        if self.visited > MAX_VISITED:
            return []
        try:
            entries = self.workspace.entries(place or ".")
        except OSError as error:
            if host_trouble(error) or not place or error.errno == errno.EFBIG:
                raise
            return []
        self.visited += len(entries)
        return entries


def _matches(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (not name.startswith(".") or part.startswith("."))
