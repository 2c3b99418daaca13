"""Fingerprints of files that were read before, so that reading an unchanged file again costs one
``stat``.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import NamedTuple

SETTLED_NS = 2_000_000_000
"""How old a file's last change must be, in nanoseconds, before its times are trusted to tell the
next one.

A file changed twice within a clock tick of its file system has the same times both times: git calls
such an index entry racy. Two seconds is the coarsest clock in use (FAT).
"""


class Identity(NamedTuple):
    """What a file's content is known by without reading it.

    Sizes in bytes, times in nanoseconds since 1970.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """The identity that ``status`` tells."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    def settled(self, now: int) -> bool:
        """Whether a change after ``now`` would surely give another identity."""
        return now - max(self.modified, self.changed) > SETTLED_NS


class FingerprintCache:
    """The fingerprints of the ``capacity`` files that were asked for last, by identity.

    Safe between threads.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._known: OrderedDict[Identity, str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identity: Identity) -> str | None:
        """The fingerprint of the content that ``identity`` stands for, if it is known."""
        with self._lock:
            fingerprint = self._known.get(identity)
            if fingerprint is not None:
                self._known.move_to_end(identity)
            return fingerprint

    def put(self, before: Identity, after: Identity, fingerprint: str, *, read_at: int) -> None:
        """Remember ``fingerprint`` of content read from ``read_at`` on, if the file was settled and
        stayed the same.
        """
        if before != after or not before.settled(read_at):
            return
        with self._lock:
            self._known[before] = fingerprint
            self._known.move_to_end(before)
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)
