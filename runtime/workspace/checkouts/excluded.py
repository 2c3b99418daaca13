"""What a workspace does not keep: patterns as ``.gitignore`` has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from pathspec import GitIgnoreSpec

from runtime.trees.entries import is_directory
from runtime.trees.tree import Tree


class Excluded:
    """Which paths are left out. A directory that is left out goes with all that is in it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        lines = tuple(patterns)
        self._spec = GitIgnoreSpec.from_lines(lines)
        # Where all are of directories, what is left out is so by a directory above it.
        self._of_files = not all(line.endswith("/") for line in lines)
        self._has_directory = lru_cache(maxsize=4096)(self._has)
        self._below = lru_cache(maxsize=4096)(self._is_below)

    def has(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path is left out. Its directories are asked for by themselves."""
        if not self._spec.patterns:
            return False
        if directory:
            return self._has_directory(path, True)
        return self._of_files and self._has(path, False)

    def _has(self, path: str, directory: bool) -> bool:
        told = path
        if not path.isascii():
            told = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return bool(self._spec.match_file(f"{told}/" if directory else told))

    def above(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path, or a directory above it, is left out."""
        if not self._spec.patterns:
            return False
        above = path.rpartition("/")[0]
        return bool(above and self._below(above)) or self.has(path, directory=directory)

    def _is_below(self, folder: str) -> bool:
        return self.above(folder, directory=True)


def left_out(tree: Tree, leave: Excluded) -> Iterator[str]:
    """The paths of a tree that are left out, without what is in them."""
    within = ""
    for path, entry in tree.under():
        if within and path.startswith(within):
            continue
        if leave.has(path, directory=is_directory(entry)):
            within = f"{path}/"
            yield path


@lru_cache(maxsize=64)
def excluded(patterns: tuple[str, ...]) -> Excluded:
    """The patterns, read."""
    return Excluded(patterns)
