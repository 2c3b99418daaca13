"""What the processes of a command use, counted from outside while they run.

Limits of the kernel's own are for one process (and, for a worker that is root, not for the number
of processes); these are for all of a command's together.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runtime.base.plurals import counted
from runtime.sandbox.command import Limits
from runtime.sandbox.nameless import Bytes, Nameless
from runtime.sandbox.sizes import told_bytes
from runtime.sandbox.written import Hidden, written_since

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SHARE = 20
"""A costly count is made only after this many times its own duration."""


@dataclass
class Watch:
    """Looks at the processes of one command.

    ``proc`` is a directory descriptor of a ``/proc`` in which ``pids`` are theirs, the first of
    which is not their own; ``memory_disks`` are file systems of theirs that are in memory,
    ``written`` the directories that they may write to.
    """

    limits: Limits
    proc: int
    pids: Callable[[], list[int]]
    memory_disks: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()
    _began: float = field(default_factory=time.time)
    _next_shares: float = 0.0
    _next_files: float = field(default_factory=lambda: time.monotonic() + 1.0)
    _free: int = field(default_factory=lambda: sys.maxsize)
    _shared: int = field(default_factory=lambda: sys.maxsize)
    _most_free: int = 0
    _least_shared: int = 0
    _nameless: int = 0
    """Bytes of memory in files without a name, when they were last counted."""

    def look(self) -> str:
        """Which limit is passed, or nothing."""
        pids = self.pids()
        if many := self._too_many(pids):
            return many
        pages = dict(map(self._living, pids))
        return self._too_long(list(pages)) or self._too_large(pages)

    def _too_many(self, pids: list[int]) -> str:
        many = f"it had more than {counted(self.limits.processes, 'process', 'processes')}"
        if len(pids) > self.limits.processes + 1:
            return many
        threads = 0
        for pid in pids:
            # Behind the last parenthesis: the name of a program may hold blanks and parentheses.
            status = self._read(f"{pid}/stat").rpartition(b")")[2].split()
            threads += int(status[17]) if len(status) > 17 else 0
        # The first process is the sandbox's own.
        return many if threads > self.limits.processes + 1 else ""

    def _too_large(self, pages: dict[str, int]) -> str:
        held = self._nameless + sum(_used(path) for path in self.memory_disks)
        resident = sum(pages.values()) * _PAGE
        if held + resident <= self.limits.memory_bytes or time.monotonic() < self._next_shares:
            return ""
        # Pages that processes share were counted once for each; their shares add up to what is
        # there, and take longer to learn.
        began = time.monotonic()
        rollups = [self._read(f"{process}/smaps_rollup") for process in pages]
        shares, files = sum(map(_share, rollups)), sum(_kib(one, b"Pss_Shmem:") for one in rollups)
        self._next_shares = time.monotonic() + _SHARE * (time.monotonic() - began)
        # Of files in memory what is mapped is counted with what is held.
        if max(held, files) + shares - files <= self.limits.memory_bytes:
            return ""
        return f"its processes used more than {told_bytes(self.limits.memory_bytes)} of memory"

    def _too_long(self, processes: list[str]) -> str:
        if not self._files_due():
            return ""
        began = time.monotonic()
        try:
            total = sum(written_since(path, self._began) for path in self.written)
        except Hidden:
            # It would be a way to write without end.
            total = sys.maxsize
        nameless = Nameless(self.proc, self.memory_disks).held(processes, self._unseen())
        self._nameless = nameless.memory
        self._next_files = time.monotonic() + max(1.0, _SHARE * (time.monotonic() - began))
        if total + nameless.disk <= self.limits.disk_bytes:
            return ""
        return f"it wrote more than {told_bytes(self.limits.disk_bytes)}"

    def _files_due(self) -> bool:
        """Whether it is time, or the disk, or memory, fills so fast that it is."""
        free = sum(_free(path) for path in self.written)
        shared = _kib(Path("/proc/meminfo").read_bytes(), b"Shmem:")
        if self._free == sys.maxsize:
            self._free, self._shared = free, shared
            self._most_free, self._least_shared = free, shared
        self._most_free = max(self._most_free, free)
        self._least_shared = min(self._least_shared, shared)
        fast = self._free - free > self.limits.disk_bytes // 8
        fast |= shared - self._shared > self.limits.memory_bytes // 8
        due = fast or time.monotonic() >= self._next_files
        if due:
            self._free, self._shared = free, shared
        return due

    def _unseen(self) -> Bytes:
        """What this machine has less of since the command began, and it may have: nothing where
        that is too little to look for.
        """
        memory, disk = self._shared - self._least_shared, self._most_free - self._free
        some = memory > self.limits.memory_bytes // 8 or disk > self.limits.disk_bytes // 8
        return Bytes(memory, disk) if some else Bytes()

    def _living(self, pid: int) -> tuple[str, int]:
        """Where ``proc`` tells of a process's memory and files, and the pages that it has there:
        its first thread may have ended before others.
        """
        if pages := self._pages(str(pid)):
            return str(pid), pages
        with contextlib.suppress(OSError):
            tasks = os.open(f"{pid}/task", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
            try:
                threads = [f"{pid}/task/{entry.name}" for entry in os.scandir(tasks)]
            finally:
                os.close(tasks)
            for thread in threads:
                if pages := self._pages(thread):
                    return thread, pages
        return str(pid), 0

    def _pages(self, process: str) -> int:
        fields = self._read(f"{process}/statm").split()
        return int(fields[1]) if len(fields) > 1 else 0

    def _read(self, name: str) -> bytes:
        """A file of ``proc``; empty for a process that is gone."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
        except OSError:
            return b""
        try:
            return os.read(descriptor, 4096)
        except OSError:
            return b""
        finally:
            os.close(descriptor)


def listed(proc: int) -> Callable[[], list[int]]:
    """All processes of the ``/proc`` that ``proc`` is a descriptor of."""
    return lambda: [int(name) for name in os.listdir(proc) if name.isdigit()]


def descendants(first: int) -> Callable[[], list[int]]:
    """The process ``first`` and all that descend from it."""

    def pids_now() -> list[int]:
        pids = [first]
        for pid in pids:
            for task in _tasks_of(pid):
                with contextlib.suppress(OSError):
                    pids.extend(map(int, (task / "children").read_text().split()))
        return pids

    return pids_now


def _tasks_of(pid: int) -> list[Path]:
    # Not by a glob, which fails where the process ends between two of its looks (Python 3.11).
    with contextlib.suppress(OSError):
        return list(Path(f"/proc/{pid}/task").iterdir())
    return []


def _used(path: Path) -> int:
    try:
        status = os.statvfs(path)
    except OSError:
        return 0
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _free(path: Path) -> int:
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def _share(rollup: bytes) -> int:
    """Bytes of ``Pss`` and ``SwapPss``."""
    return sum(_kib(rollup, name) for name in (b"Pss:", b"SwapPss:"))


def _kib(text: bytes, name: bytes) -> int:
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0
