"""Disks without room, told while jobs run: the archive's writes are tried again, but a server that
cannot write says nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path

FULL_BYTES = 256 * 1024
"""A disk with less room is full: neither the server's database nor an archived turn may fit."""

LOOK_SECONDS = 1.0


async def tell_of_full_disks(
    folders: Iterable[Path], tell: Callable[[str], None], again: str
) -> None:
    """Tell when the disk of one of ``folders`` is full, and when it has room again, until
    cancelled.

    ``again`` is the command that goes on with the jobs, should this one have ended.
    """
    full: set[Path] = set()
    watched = tuple(folders)
    while True:
        for folder in watched:
            room = await asyncio.to_thread(room_on, folder)
            if room is not None and room < FULL_BYTES and folder not in full:
                full.add(folder)
                tell(
                    f"the disk of {folder} is full: free space, and the jobs go on where they are,"
                    " within a minute or two. Nothing is lost; if this command has ended by then,"
                    f" give it again: {again}"
                )
            # Twice as much: else a disk at the bound would be told of again and again.
            elif room is not None and room >= 2 * FULL_BYTES and folder in full:
                full.remove(folder)
                tell(f"the disk of {folder} has room again: the jobs go on")
        await asyncio.sleep(LOOK_SECONDS)


def room_on(folder: Path) -> int | None:
    """The bytes that this user may still write on the disk of ``folder``; None where nobody
    says.
    """
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    # A file system that counts no blocks has no bound to tell.
    if not disk.f_blocks:
        return None
    # File systems keep some blocks for root.
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize
