"""A file of the workspace as a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from runtime.base.digests import digest_bytes, digest_of
from runtime.context.outlines import Item
from runtime.sources.parquet import SUFFIXES, parquet_outline
from runtime.sources.source import Known, Mask, Opened
from runtime.workspace.files import Content, Workspace
from runtime.workspace.fingerprints import FingerprintCache, Identity

ATTEMPTS = 3
"""So often a file is read that changes while it is read, before it is shown as it was found
last.
"""

BEING_WRITTEN = "it was being written while it was read"


@dataclass(frozen=True)
class FileSource:
    """The file ``path``. ``now`` tells nanoseconds since 1970."""

    workspace: Workspace
    path: str
    fingerprints: FingerprintCache
    now: Callable[[], int]

    def known(self) -> Known | None:
        """The fingerprint from the cache, if the file is the one that was read before."""
        identity = self.workspace.identity(self.path)
        fingerprint = self.fingerprints.get(identity)
        return None if fingerprint is None else Known(fingerprint, identity.size)

    def open(self) -> Opened:
        """The file as one read found it: the bytes that are shown are those that are hashed,
        whatever happens meanwhile.
        """
        started, content = self._stable()
        whole = content.missing == 0
        # Of a file too large to be read the ends, the size and the time must do.
        parts = [digest_bytes(content.data), content.before.size, content.before.modified]
        fingerprint = digest_bytes(content.data) if whole else digest_of(parts)
        self.fingerprints.put(content.before, content.after, fingerprint, read_at=started)
        notes = [] if content.stable else [BEING_WRITTEN]
        if not whole:
            notes.append(
                f"the ends of a file of {content.before.size:,} bytes; lines are counted in what is"
                " here"
            )
        outline = None
        if self.path.lower().endswith(SUFFIXES):
            outline = partial(self._parquet, content.before)
        return Opened(
            content.data, fingerprint, content.before.size, self.path, "; ".join(notes), outline
        )

    def _parquet(self, read: Identity, mask: Mask) -> tuple[Item, ...]:
        """The outline of a Parquet file, which is read by itself, from the same file as the
        bytes.
        """
        with self.workspace.opened(self.path) as (file, now):
            if now != read:
                return (Item(0, 0, "it was replaced while it was read"),)
            return parquet_outline(file, mask)

    def _stable(self) -> tuple[int, Content]:
        for _ in range(ATTEMPTS):
            started, content = self.now(), self.workspace.content(self.path)
            # A file that is written all the time is shown as it is found: waiting for it would
            # never end.
            if content.stable:
                break
        return started, content
