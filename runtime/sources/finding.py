"""Which source a view's path names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.archive.stores import ObjectStore
from runtime.base.addresses import RESOURCE, SCHEME
from runtime.base.values import JobKey
from runtime.sources.archived import ArchiveSource
from runtime.sources.files import FileSource
from runtime.sources.listings import DirectorySource, GlobSource, is_pattern
from runtime.sources.resources import NoResources, Resources, ResourceSource
from runtime.sources.source import Source
from runtime.sources.web import Pages, WebSource
from runtime.workspace.files import Workspace
from runtime.workspace.fingerprints import FingerprintCache


@dataclass(frozen=True)
class Sources:
    """The sources of the job ``own``.

    ``now`` tells nanoseconds since 1970, ``allowed`` which URLs it may read.
    """

    workspace: Workspace
    fingerprints: FingerprintCache
    now: Callable[[], int]
    allowed: tuple[str, ...] = ()
    pages: Pages = field(default_factory=Pages)
    store: ObjectStore | None = None
    own: JobKey | None = None
    resources: Resources = field(default_factory=NoResources)

    def find(self, path: str) -> Source:
        """The source that ``path`` names: a URL, a server's resource, an address in the
        archive, what is in the workspace under that very name, or else a pattern.

        Raises:
            OSError: if the path leads out of the workspace.
            ValueError: if no file can have it.
        """
        if path.startswith(("http://", "https://")):
            return WebSource(path, self.allowed, self.pages)
        if path.startswith(RESOURCE):
            return ResourceSource(path, self.resources)
        if path.startswith(SCHEME):
            if self.store is None:
                raise FileNotFoundError(f"there is no archive here: {path!r}")
            return ArchiveSource(path, self.store, self.own)
        # A file may have the characters of a pattern in its name.
        if is_pattern(path) and not self.workspace.exists(path):
            return GlobSource(self.workspace, path)
        if self.workspace.is_dir(path):
            return DirectorySource(self.workspace, path)
        return FileSource(self.workspace, path, self.fingerprints, self.now)
