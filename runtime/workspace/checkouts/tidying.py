"""Bounding what a host keeps: bases, set-ups and checkouts of jobs that ended elsewhere, or rest.

All of it can be made again. What was not used for a while is deleted, the oldest first, until no
more than a bound is left; what somebody has stays, and so does what was used lately, whatever the
bound is. What killed workers left over goes in any case. A directory is put aside before it is
deleted, so half of one is never used (``runtime/base/kept.py``).
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from runtime.base.failpoints import failpoint
from runtime.base.kept import Busy, Kept
from runtime.sandbox.layers import remove_tree
from runtime.workspace.walk import LIST

REST_SECONDS = 900.0
"""What was used within this time stays: its job is at work, and waits for a model."""

_SIZES = "sizes.json"
# What ``st_blocks`` counts, whatever blocks the file system has.
_BLOCK = 512
_GROUPS = {"linked": "checkouts", "own": "checkouts", "setups": "set-ups", "bases": "bases"}
"""The folders, in the order in which equally old ones go: a base after what links to it."""


class Names(Enum):
    """What a file counts for that has other names elsewhere: all, its part, or nothing."""

    OWN = "own"
    SHARE = "share"
    NONE = "none"


_OF_OTHERS = {"bases": Names.OWN, "linked": Names.NONE}


@dataclass(frozen=True)
class Measured:
    """One directory that is kept: its folder, and the bytes on disk that go with it."""

    folder: str
    kept: Kept
    used: int
    size: int


@dataclass(frozen=True)
class Tidied:
    """How many directories were deleted and their bytes, and the bytes that are left."""

    deleted: int
    freed: int
    left: int


def tidy(
    root: Path,
    most: int,
    *,
    rest: float = REST_SECONDS,
    stop: threading.Event | None = None,
) -> Tidied | None:
    """Delete below ``root`` what is above ``most`` bytes; None if another process is doing it.

    Raises:
        OSError: if the host refuses.
    """
    if not root.is_dir():
        return Tidied(0, 0, 0)
    with _alone(root) as mine:
        if not mine:
            return None
        aside = root / "aside"
        _left_over(root, aside, rest)
        directories = list(kept_in(root))
        total = sum(one.size for one in directories)
        deleted = freed = 0
        for one in _oldest(directories, rest):
            if total - freed <= most or (stop is not None and stop.is_set()):
                break
            if _deleted(one, aside):
                deleted, freed = deleted + 1, freed + one.size
        return Tidied(deleted, freed, total - freed)


def kept_in(root: Path) -> Iterator[Measured]:
    """All that is kept below ``root``. What cannot have changed since it was measured is not
    measured again.
    """
    known = _known(root)
    sizes: dict[str, tuple[int, int]] = {}
    for folder in _GROUPS:
        for kept in _places(root, folder):
            name, used = str(kept.place.relative_to(root)), kept.used()
            stamp = _stamp(folder, kept)
            measured = known.get(name)
            if stamp and measured is not None and measured[0] == stamp:
                size = measured[1]
            else:
                size = disk_bytes(kept.place, _OF_OTHERS.get(folder, Names.SHARE))
            sizes[name] = stamp, size
            yield Measured(folder, kept, used, size)
    if sizes != known:
        _remember(root, sizes)


def _stamp(folder: str, kept: Kept) -> int:
    """What is another when a directory has changed; 0 while it may change at any time."""
    whole = {"bases": kept.place, "setups": kept.place / "log"}.get(folder, kept.lock)
    try:
        return whole.stat().st_mtime_ns
    except OSError:
        return 0


def told(root: Path) -> tuple[int, str]:
    """The bytes that are kept below ``root``, and how many of each kind."""
    counts = dict.fromkeys(dict.fromkeys(_GROUPS.values()), 0)
    total = 0
    for one in kept_in(root):
        counts[_GROUPS[one.folder]] += 1
        total += one.size
    return total, ", ".join(f"{count} {kind}" for kind, count in counts.items())


def disk_bytes(top: Path, names: Names = Names.SHARE) -> int:
    """The room that a directory takes."""
    total = 0
    waiting = [os.fspath(top)]
    while waiting:
        # It may be changed, or deleted, meanwhile.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    total += _size(status, names)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
    return total


def _size(status: os.stat_result, names: Names) -> int:
    # File systems that allocate late say little of blocks for some seconds.
    size = max(status.st_blocks * _BLOCK, status.st_size)
    if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1 or names is Names.OWN:
        return size
    return 0 if names is Names.NONE else size // status.st_nlink


def _oldest(directories: list[Measured], rest: float) -> list[Measured]:
    """What was not used for the time ``rest``, the oldest first."""
    since = time.time_ns() - int(rest * 1e9)
    order = {folder: number for number, folder in enumerate(_GROUPS)}
    resting = (one for one in directories if one.used <= since)
    return sorted(resting, key=lambda one: (one.used, order[one.folder], one.kept.place))


def _deleted(one: Measured, aside: Path) -> bool:
    """Whether it was put aside; that it is deleted is left for the next time if need be."""
    try:
        # Somebody may have had it since it was measured.
        put = one.kept.put_aside(aside, unused_since=one.used)
    except Busy:
        return False
    if put is None:
        return False
    failpoint("tidy.aside")
    with suppress(OSError):
        remove_tree(put)
    if one.folder in {"linked", "own"}:
        # The batch's, when it has no other job.
        with suppress(OSError):
            one.kept.place.parent.rmdir()
    return True


def _left_over(root: Path, aside: Path, rest: float) -> None:
    """Delete what a killed process was deleting, and what killed workers had while they ran."""
    since = time.time() - rest
    for top in _folders(root / "running"):
        with suppress(OSError):
            # Nobody has it locked in its first moment either, before its maker does: so its age
            # counts too.
            if top.stat().st_mtime > since:
                continue
            with _nobodys(top) as left:
                if left:
                    aside.mkdir(exist_ok=True, mode=0o700)
                    # The name is nobody else's then, and an empty directory may be replaced by a
                    # rename.
                    top.rename(tempfile.mkdtemp(dir=aside))
    for put in _folders(aside):
        failpoint("tidy.deleting")
        with suppress(OSError):
            remove_tree(put)


@contextmanager
def _nobodys(top: Path) -> Iterator[bool]:
    """Whether no process has a directory locked, which each does for as long as it needs it.

    Where none has, none gets it within the block: who waits for it looks whether it is still there.
    """
    file = os.open(top, LIST)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            free = False
        else:
            free = True
        yield free
    finally:
        os.close(file)


def _places(root: Path, folder: str) -> Iterator[Kept]:
    if folder in {"linked", "own"}:
        for batch in _folders(root / folder):
            for place in _folders(batch):
                yield Kept(place, place / "lock")
        return
    names = {path.name.removesuffix(".lock") for path in _listed(root / folder)}
    for name in sorted(names):
        yield Kept(root / folder / name, root / folder / f"{name}.lock")


def _folders(top: Path) -> list[Path]:
    return [path for path in _listed(top) if path.is_dir() and not path.is_symlink()]


def _listed(top: Path) -> list[Path]:
    try:
        return sorted(top.iterdir())
    except OSError:
        return []


@contextmanager
def _alone(root: Path) -> Iterator[bool]:
    """Whether no other process of this host tidies now."""
    file = os.open(root / "tidy.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(file)


def _known(root: Path) -> dict[str, tuple[int, int]]:
    """What was measured before: of each place, its stamp then, and its bytes."""
    try:
        sizes = json.loads((root / _SIZES).read_bytes())
        return {str(name): (int(used), int(size)) for name, (used, size) in sizes.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(root: Path, sizes: dict[str, tuple[int, int]]) -> None:
    # A reader of the directory who may not write to it, and a full disk, do without.
    with suppress(OSError):
        file, name = tempfile.mkstemp(prefix=_SIZES, dir=root)
        with os.fdopen(file, "w") as opened:
            json.dump(sizes, opened)
        Path(name).replace(root / _SIZES)
