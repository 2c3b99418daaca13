"""What room there is on a disk."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

FULL_BYTES = 256 * 1024
"""A disk with less room is full: neither the server's database nor an archived turn may fit."""

FEW_FILES = 16
"""A disk that can hold fewer further ones is full."""


@dataclass(frozen=True)
class Lack:
    """What a full disk is short of: ``told`` follows "the disk", ``remedy`` is what to do."""

    told: str
    remedy: str


NO_SPACE = Lack("is full", "free space")
NO_FILES = Lack("is full, as it can hold no further files (inodes)", "delete some")


@dataclass(frozen=True)
class Room:
    """The bytes that this user may still write, and the files that the disk still has inodes for;
    ``sys.maxsize`` where there is no bound.
    """

    bytes: int
    files: int

    def lack(self, times: int = 1) -> Lack | None:
        """What the disk is short of; None if it has so many ``times`` what it needs."""
        if self.bytes < times * FULL_BYTES:
            return NO_SPACE
        if self.files < times * FEW_FILES:
            return NO_FILES
        return None


def room_on(folder: Path) -> Room | None:
    """The room on the disk of ``folder``; None where nobody says."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    # File systems keep some of both for root.
    blocks, files = (
        (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    )
    # One that counts no blocks, or no files, as btrfs does, has no bound to tell.
    return Room(
        bytes=blocks * disk.f_frsize if disk.f_blocks else sys.maxsize,
        files=files if disk.f_files else sys.maxsize,
    )
