"""What a workspace does not keep: patterns as ``.gitignore`` has them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pathspec import GitIgnoreSpec


class Excluded:
    """Which paths are left out. A directory that is left out goes with all that is in it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._spec = GitIgnoreSpec.from_lines(patterns)
        self._has_directory = lru_cache(maxsize=4096)(self._has)

    def has(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path is left out. Its directories are asked for by themselves."""
        if not self._spec.patterns:
            return False
        return self._has_directory(path, True) if directory else self._has(path, False)

    def _has(self, path: str, directory: bool) -> bool:
        told = path
        if not path.isascii():
            told = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return bool(self._spec.match_file(f"{told}/" if directory else told))

    def above(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path, or a directory above it, is left out."""
        if not self._spec.patterns:
            return False
        names = path.split("/")
        ups = ("/".join(names[:n]) for n in range(1, len(names)))
        return any(self.has(up, directory=True) for up in ups) or self.has(
            path, directory=directory
        )


@lru_cache(maxsize=64)
def excluded(patterns: tuple[str, ...]) -> Excluded:
    """The patterns, read."""
    return Excluded(patterns)
