"""What the paths in a jobs file lead to."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from runtime.base.characters import is_unicode
from runtime.base.errors import InputError
from runtime.base.places import expanded, is_file
from runtime.base.quoted import shown
from runtime.jobsfile.problems import Location, Problems

REMEMBERED = 4_096
"""So many answers, of each kind, are remembered."""


class Disk:
    """The disk as one file's paths see it, which is asked once for each value, not for each job.

    Args:
        directory: the absolute directory that the file's paths are relative to.
        problems: takes what is wrong.
    """

    def __init__(self, directory: Path, problems: Problems) -> None:
        self.directory = directory
        self._problems = problems
        # For this file alone: when the next one is read, the disk may be another.
        self._workspace_fault = lru_cache(REMEMBERED)(workspace_fault)
        self._is_file = lru_cache(REMEMBERED)(is_file)

    def path(self, text: str, at: Location) -> str:
        """``text`` as an absolute path; what is none, or has no UTF-8, is noted.

        Links stay links, so a workspace may be moved by re-pointing one.
        """
        try:
            path = expanded(text)
        except InputError as error:
            self._problems.add(at, str(error))
            path = Path()
        absolute = os.path.normpath(self.directory / path)
        if not is_unicode(absolute):
            self._problems.add(at, f"expected a path that is UTF-8, got {shown(absolute)}")
        return absolute

    def is_script(self, path: str) -> bool:
        """Whether there is a file at ``path``."""
        return self._is_file(path)

    def workspace(self, text: str, at: Location) -> str:
        """``text`` as the absolute path of a directory; one that cannot be read is noted."""
        path = self.path(text, at)
        if (fault := self._workspace_fault(path)) is not None:
            self._problems.add(at, f"expected a directory, got {shown(text)}, {fault}")
        return path


def workspace_fault(path: str) -> str | None:
    """Why the directory at ``path`` cannot be read, if it cannot."""
    try:
        with os.scandir(path) as entries:
            next(entries, None)
    except (FileNotFoundError, NotADirectoryError):
        return "which is none"
    except OSError as error:
        return f"which may not be read ({error.strerror})"
    return None
