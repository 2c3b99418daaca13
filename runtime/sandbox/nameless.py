"""What processes hold that nobody else finds: deleted files, and memory that is shared by files
without a name, open or mapped.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_DELETED = b" (deleted)"
"""How lines of ``/proc/PID/maps`` end whose file has no name any more."""
_MEMORY = ("/memfd:", "/dev/zero", "/SYSV")
"""How the names begin that the kernel gives to what is memory."""

File = tuple[int, int]
"""Its device and inode."""


@dataclass(frozen=True)
class Bytes:
    """So many in memory, and on disk."""

    memory: int = 0
    disk: int = 0


@dataclass
class Nameless:
    """Counts for the processes of ``proc``, a directory descriptor. What is on ``memory_disks`` is
    counted there.
    """

    proc: int
    memory_disks: Sequence[Path]

    def held(self, processes: Sequence[str], mapped: Bytes) -> Bytes:
        """What is in files that processes, by their names in ``proc``, have open; and in those that
        they have only mapped, which is looked for where that can be something.

        Of a mapped file only root is told what it holds; for others it is as long as its mappings,
        and all together at most ``mapped``.
        """
        devices = {status.st_dev for status in map(_status, self.memory_disks) if status}
        known: dict[File, tuple[str, int]] = {}
        for process in processes:
            for file, name, size in self._open_in(process):
                known[file] = name, size
        guessed: dict[File, tuple[str, int]] = {}
        if mapped != Bytes():
            for process in processes:
                lengths: defaultdict[File, int] = defaultdict(int)
                for file, name, length, told in self._mapped_in(process, known):
                    if told is not None:
                        known[file] = name, told
                    else:
                        lengths[file] += length
                        guessed[file] = name, max(lengths[file], guessed.get(file, ("", 0))[1])
        exact, most = (
            _sum({file: one for file, one in files.items() if file[0] not in devices})
            for files in (known, guessed)
        )
        return Bytes(
            exact.memory + min(most.memory, mapped.memory), exact.disk + min(most.disk, mapped.disk)
        )

    def _open_in(self, process: str) -> Iterator[tuple[File, str, int]]:
        """The open files of one process that have no name any more."""
        with contextlib.suppress(OSError):
            directory = os.open(f"{process}/fd", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
            try:
                for entry in os.scandir(directory):
                    with contextlib.suppress(OSError):
                        status = entry.stat()
                        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                            name = os.readlink(entry.name, dir_fd=directory)
                            yield (status.st_dev, status.st_ino), name, status.st_blocks * 512
            finally:
                os.close(directory)

    def _mapped_in(
        self, process: str, known: dict[File, tuple[str, int]]
    ) -> Iterator[tuple[File, str, int, int | None]]:
        """The mappings of one process of such files that are not ``known``: how long each is, and
        what its file holds, if that is told.
        """
        with contextlib.suppress(OSError):
            maps_fd = os.open(f"{process}/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
            with os.fdopen(maps_fd, "rb") as maps:
                lines = [line for line in maps.read().splitlines() if line.endswith(_DELETED)]
            for line in lines:
                extent, _, _, device, inode, path = line.split(maxsplit=5)
                major, minor = (int(number, 16) for number in device.split(b":"))
                file = os.makedev(major, minor), int(inode)
                if file in known:
                    continue
                begin, end = (int(address, 16) for address in extent.split(b"-"))
                status = None
                with contextlib.suppress(OSError):
                    place = f"{process.partition('/')[0]}/map_files/{begin:x}-{end:x}"
                    status = os.stat(place, dir_fd=self.proc)
                size = None if status is None else status.st_blocks * 512
                yield file, os.fsdecode(path), end - begin, size


def _sum(files: dict[File, tuple[str, int]]) -> Bytes:
    memory = sum(size for name, size in files.values() if name.startswith(_MEMORY))
    return Bytes(memory, sum(size for _, size in files.values()) - memory)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
