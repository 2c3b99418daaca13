"""Which source a view's path names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runtime.fingerprints import FingerprintCache
from runtime.sources.files import FileSource
from runtime.sources.listings import DirectorySource, GlobSource, is_pattern
from runtime.sources.source import Source
from runtime.workspace import Workspace


@dataclass(frozen=True)
class Sources:
    """The sources of one job. ``now`` tells nanoseconds since 1970."""

    workspace: Workspace
    fingerprints: FingerprintCache
    now: Callable[[], int]

    def find(self, path: str) -> Source:
        """The source that ``path`` names: what is in the workspace under that very name, or else a pattern.

        Raises:
            OSError: if the path leads out of the workspace.
            ValueError: if no file can have it.
        """
        if is_pattern(path) and not self.workspace.exists(path):
            return GlobSource(self.workspace, path)
        if self.workspace.is_dir(path):
            return DirectorySource(self.workspace, path)
        return FileSource(self.workspace, path, self.fingerprints, self.now)
