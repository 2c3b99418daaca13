"""From trees to directories: the changes between two versions, made in a directory.

Modification times are made up, the same everywhere: ``EPOCH`` for what the base brought, and a
second more for each change after it, so that ``make`` and its like see what is newer.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runtime.sandbox.layers import remove_tree
from runtime.trees.entries import DIRECTORY_MODE, Changes, Entry, Kind, file_entry
from runtime.trees.tree import Tree
from runtime.workspace.walk import CREATE

EPOCH = 1_577_836_800
"""The first of January 2020."""

_ENTER = stat.S_IRWXU
_FICLONE = 0x40049409
"""Linux' request for a file to have another's bytes; ``fcntl`` has it from Python 3.12 on."""
_OVERLAYS = "user.overlay."
"""What an overlay notes at the files of its upper layer."""


def lay(root: Path, changes: Changes, after: Tree, put: Callable[[str, Entry], None]) -> None:
    """Make ``changes``, in the order of trees, in the directory ``root``; ``after`` is the tree
    that they lead to. ``put`` makes a file, in the place of another that may be there.

    Raises:
        OSError: if the host refuses; then the directory is at no version.
    """
    opened: dict[str, None] = {"": None}
    directories: dict[str, Entry] = {}
    for path, entry in changes.items():
        place = f"{root}/{path}"
        _open_above(root, path, opened)
        if entry is None:
            _remove(place)
        elif entry.kind is Kind.DIRECTORY:
            if not _is_directory(place):
                _remove(place)
                os.mkdir(place)  # noqa: PTH102 paths of pathlib cost much
            directories[path] = entry
        elif entry.kind is Kind.LINK:
            _remove(place)
            os.symlink(entry.content, place)  # noqa: PTH211 bytes that are no UTF-8
        else:
            if _is_directory(place):
                _remove(place)
            put(place, entry)
    _modes(root, {**dict.fromkeys(opened), **dict.fromkeys(directories)}, after)


def write_file(place: str, entry: Entry, data: bytes) -> None:
    """Make a file with its mode and its made-up time, in the place of another."""

    def fill(file: int) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]

    _make_file(place, entry, fill)


def clone_file(source: str, place: str, entry: Entry) -> None:
    """As ``write_file``, with the bytes of ``source``: they take no room until one of the two is
    written.

    Raises:
        OSError: if the host refuses, as most file systems do.
    """
    bytes_of = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _make_file(place, entry, lambda file: fcntl.ioctl(file, _FICLONE, bytes_of))
    finally:
        os.close(bytes_of)


def link_file(source: str, place: str, entry: Entry) -> None:
    """Another name for ``source``, which nobody writes to, in the place of another file.

    Raises:
        OSError: if the host refuses: too many names, or a file system without.
    """
    with suppress(FileNotFoundError):
        os.unlink(place)  # noqa: PTH108 as above
    os.link(source, place, follow_symlinks=False)


def clones_work(directory: Path) -> bool:
    """Whether files in ``directory`` can have the bytes of others (btrfs, XFS and others)."""
    if sys.platform != "linux":
        return False
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="clone-", dir=directory) as top:
            write_file(f"{top}/source", file_entry(b"bytes"), b"bytes")
            clone_file(f"{top}/source", f"{top}/clone", file_entry(b"bytes"))
            return (Path(top) / "clone").read_bytes() == b"bytes"
    except OSError:
        return False


def _make_file(place: str, entry: Entry, fill: Callable[[int], object]) -> None:
    # A new file, never the old one's bytes: that may be a link to the base's.
    with suppress(FileNotFoundError):
        os.unlink(place)  # noqa: PTH108 as above
    file = os.open(place, CREATE, 0o600)
    try:
        fill(file)
        os.fchmod(file, entry.mode)
        moment = EPOCH + entry.depth
        os.utime(file, (moment, moment))
    except OSError as error:
        # Of a descriptor the system names no file: nobody would know which disk is full.
        error.filename = place
        raise
    finally:
        os.close(file)


def move_file(left: str, place: str, entry: Entry) -> bool:
    """Move what a command left to a place, with a file's mode and its made-up time; its bytes are
    those of the entry.

    False if it has what no version has and another checkout would not: other names, or attributes.
    Then it stays.
    """
    status = os.lstat(left)
    named = os.listxattr(left, follow_symlinks=False)
    overlays = [name for name in named if name.startswith(_OVERLAYS)]
    if status.st_nlink > 1 or any(not name.startswith((_OVERLAYS, "security.")) for name in named):
        # A file with other names would change when they do; attributes are in no version.
        return False
    for name in overlays:
        os.removexattr(left, name, follow_symlinks=False)
    if stat.S_IMODE(status.st_mode) != entry.mode:
        os.chmod(left, entry.mode)  # noqa: PTH101 as above
    moment = EPOCH + entry.depth
    os.utime(left, (moment, moment))
    # Onto an old file ext4 would write the new one's bytes to the disk first, file by file.
    with suppress(FileNotFoundError):
        os.unlink(place)  # noqa: PTH108 as above
    os.rename(left, place)  # noqa: PTH104 as above
    return True


def set_times(root: Path, changes: Changes) -> None:
    """Give what has changed in a directory its made-up times; all of ``changes`` is there."""
    folders = {""}
    for path, entry in changes.items():
        if entry is not None and entry.is_file:
            moment = EPOCH + entry.depth
            os.utime(f"{root}/{path}", (moment, moment))
        folders.add(path.rpartition("/")[0])
        if entry is not None and entry.kind is Kind.DIRECTORY:
            folders.add(path)
    for folder in sorted(folders):
        if (root / folder).is_dir():
            os.utime(root / folder, (EPOCH, EPOCH))


def _is_directory(place: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except FileNotFoundError:
        return False


def _remove(place: str) -> None:
    if os.path.lexists(place):
        remove_tree(Path(place))


def _open_above(root: Path, path: str, opened: dict[str, None]) -> None:
    """Make the directories above a path, and let their owner write in them meanwhile."""
    above = path.rpartition("/")[0]
    if above in opened:
        return
    names = above.split("/")
    for count in range(1, len(names) + 1):
        folder = "/".join(names[:count])
        if folder in opened:
            continue
        opened[folder] = None
        place = f"{root}/{folder}"
        if not _is_directory(place):
            _remove(place)
            os.mkdir(place)  # noqa: PTH102 as above
        elif os.lstat(place).st_mode & _ENTER != _ENTER:
            # A version may have a directory that nobody may write to; ``_modes`` gives its mode
            # back.
            os.chmod(place, _ENTER)  # noqa: PTH101 as above


def _modes(root: Path, folders: dict[str, None], after: Tree) -> None:
    """Give directories their modes and times, the inner ones first."""
    for folder in sorted(folders, key=lambda path: path.count("/"), reverse=True):
        entry = after.get(folder) if folder else None
        if folder and (entry is None or entry.kind is not Kind.DIRECTORY):
            continue
        place = f"{root}/{folder}"
        os.chmod(place, entry.mode if entry is not None else DIRECTORY_MODE)  # noqa: PTH101
        os.utime(place, (EPOCH, EPOCH))
