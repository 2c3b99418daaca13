"""Disks without room, told while jobs run: the archive's writes are tried again, but a server that
cannot write says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from runtime.base.disk_room import room_on

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
            if room is None:
                continue
            if (lack := room.lack()) is not None and folder not in full:
                full.add(folder)
                tell(
                    f"the disk of {folder} {lack.told}: {lack.remedy}, and the jobs go on where"
                    " they are, within a minute or two. Nothing is lost; if this command has ended"
                    f" by then, give it again: {again}"
                )
            # Twice as much: else a disk at the bound would be told of again and again.
            elif folder in full and room.lack(times=2) is None:
                full.remove(folder)
                tell(f"the disk of {folder} has room again: the jobs go on")
        await asyncio.sleep(LOOK_SECONDS)
