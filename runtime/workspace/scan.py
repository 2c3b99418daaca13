"""Listing directories of the workspace: bounded, sorted, and the same at every call."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from runtime.base.host_trouble import host_trouble
from runtime.base.os_values import ScanEntry
from runtime.workspace.walk import escape_name

_LINKED_DEPTH = 64
"""How deep a scan without ``max_depth`` goes when it follows links, so that a cycle ends.

Monty's own figure.
"""


@dataclass(frozen=True)
class Child:
    """One name in a directory, raw, and its kind without following it."""

    name: str
    is_dir: bool
    is_file: bool
    is_symlink: bool


@dataclass(frozen=True)
class ScanLimits:
    """Bounds of one scan: entries in the answer, entries looked at, and bytes of paths in the
    answer.
    """

    entries: int
    visited: int
    path_bytes: int


def sorted_children(directory: int, bound: int, path: str) -> list[Child]:
    """The entries of the open ``directory``, sorted by raw name.

    Raises:
        OSError: if there are more than ``bound``.
    """
    children: list[Child] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if len(children) >= bound:
                raise OSError(
                    errno.EFBIG,
                    f"More than {bound:,} entries; use a tool, or a smaller directory",
                    path,
                )
            children.append(
                Child(
                    entry.name,
                    entry.is_dir(follow_symlinks=False),
                    entry.is_file(follow_symlinks=False),
                    entry.is_symlink(),
                )
            )
    return sorted(children, key=lambda child: os.fsencode(child.name))


@dataclass
class Scan:
    """One walk over the tree at ``path``; see ``Workspace.scan``."""

    path: str
    limits: ScanLimits
    max_depth: int | None
    follow_symlinks: bool
    pattern: Sequence[str] | None
    case_sensitive: bool | None
    _entries: list[ScanEntry] = field(default_factory=list)
    _visited: int = 0
    _path_bytes: int = 0

    def run(
        self,
        children: Callable[[str, int], list[Child]],
        kind_of: Callable[[str], int],
        mode: int,
        is_link: bool,
    ) -> list[ScanEntry]:
        """All entries, each directory's before those beneath it.

        ``kind_of`` tells the mode behind a path, or 0; ``mode`` and ``is_link`` describe ``path``
        itself.
        """
        self._take(ScanEntry("", stat.S_ISDIR(mode), stat.S_ISREG(mode), is_link))
        pending = [("", 0)] if stat.S_ISDIR(mode) else []
        depth_limit = (
            _LINKED_DEPTH if self.max_depth is None and self.follow_symlinks else self.max_depth
        )
        while pending:
            relative, depth = pending.pop()
            if depth_limit is not None and depth >= depth_limit:
                continue
            below: list[tuple[str, int]] = []
            for child in self._list(relative, depth, children):
                place = f"{relative}/{child.name}" if relative else child.name
                entry = self._described(child, place, kind_of)
                if entry.is_dir or self._may_match(child.name):
                    self._take(entry)
                if entry.is_dir and (self.follow_symlinks or not entry.is_symlink):
                    below.append((place, depth + 1))
            # The last one in is listed next: so the first name is.
            pending.extend(reversed(below))
        return self._entries

    def _list(
        self, relative: str, depth: int, children: Callable[[str, int], list[Child]]
    ) -> list[Child]:
        try:
            listed = children(self._spelled(relative), self.limits.visited - self._visited)
        except OSError as error:
            # Only what lies below may be unreadable in silence; the bounds hold everywhere.
            if host_trouble(error):
                raise
            if depth == 0 or error.errno == errno.EFBIG:
                raise OSError(error.errno, error.strerror, self.path) from None
            return []
        self._visited += len(listed)
        return listed

    def _spelled(self, relative: str) -> str:
        return f"{self.path}/{relative}" if relative else self.path

    def _described(self, child: Child, place: str, kind_of: Callable[[str], int]) -> ScanEntry:
        if not child.is_symlink:
            return ScanEntry(escape_name(place), child.is_dir, child.is_file, False)
        mode = kind_of(self._spelled(place))
        return ScanEntry(escape_name(place), stat.S_ISDIR(mode), stat.S_ISREG(mode), True)

    def _may_match(self, name: str) -> bool:
        """Whether a glob's last part could match ``name``; Monty does the exact matching itself."""
        if not self.pattern or "**" in self.pattern[-1]:
            return True
        last, shown = self.pattern[-1], escape_name(name)
        if self.case_sensitive is False:
            return fnmatchcase(shown.lower(), last.lower())
        return fnmatchcase(shown, last)

    def _take(self, entry: ScanEntry) -> None:
        # What JSON has beside the path, for the three answers of an entry.
        self._path_bytes += len(entry.path) + len("[,true,true,true]")
        if len(self._entries) >= self.limits.entries or self._path_bytes > self.limits.path_bytes:
            raise OSError(
                errno.EFBIG,
                f"More than {len(self._entries):,} entries beneath; use a pattern, a subdirectory"
                " or a tool",
                self.path,
            )
        self._entries.append(entry)
