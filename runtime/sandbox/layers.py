"""What a command left in an overlay's upper layer, as the kernel writes it there (the kernel's
documentation of overlayfs: "whiteouts and opaque directories").
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runtime.base.path_lengths import too_long
from runtime.sandbox.command import Place

_MOST_MOUNT_BYTES = 4096
_MOST_LAYERS = 500
_PREFIXES = ("user.overlay.", "trusted.overlay.")
_OTHERS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class Changed:
    """One path that a command made, changed or deleted."""

    path: str
    """Relative, with ``/``; bytes that are no UTF-8 as surrogates (``os.fsdecode``)."""
    kind: Literal["file", "symlink", "directory", "deleted", "dropped"]
    mode: int = 0
    """Permission bits, never set-user-id and its like."""
    opaque: bool = False
    """A directory that hides what the layers below have at its path."""
    reason: str = ""
    """Why it was dropped: ``a socket``."""


def changed_in(upper: Path) -> Iterator[Changed]:
    """What is in ``upper``: directories before what is in them, in the order of their names.

    Costs as much as there is in it. A directory or file that its owner may not read is made
    readable on the way, and told with the mode that it had.
    """
    waiting = [""]
    while waiting:
        parent = waiting.pop()
        directory = f"{upper}/{parent}" if parent else str(upper)
        deleted_as_files = _attribute(directory, "opaque") == b"x"
        below = []
        for name in sorted(os.listdir(directory)):  # noqa: PTH208 paths of pathlib cost much
            path = f"{parent}/{name}" if parent else name
            changed = _changed(f"{directory}/{name}", path, deleted_as_files=deleted_as_files)
            if changed.kind == "directory":
                below.append(path)
            yield changed
        # Reversed, as the last one is taken first: names come in their order.
        waiting.extend(reversed(below))


def fit_in_a_mount(place: Place) -> bool:
    """Whether the kernel takes the names of so many layers: it has a page for all of them, and at
    most 500 layers.
    """
    layers = [*place.lowers, *(path for path in (place.upper, place.work) if path is not None)]
    # bubblewrap sees the host at /oldroot, and escapes what separates the names.
    names = [os.fsencode(path.resolve()) for path in layers]
    escaped = sum(len(name) + sum(name.count(mark) for mark in b":,\\") for name in names)
    fixed = len("upperdir=,workdir=,lowerdir=,userxattr") + len("/oldroot:") * len(names)
    return escaped + fixed < _MOST_MOUNT_BYTES and len(place.lowers) <= _MOST_LAYERS


def remove_tree(top: Path) -> None:
    """Delete what a command may have made, however deep, long or unreadable it is."""
    if top.is_symlink() or not top.is_dir():
        top.unlink(missing_ok=True)
        return
    # Directories are moved up to the top before they are emptied, so no path gets long. By names
    # that are not there: what was killed over it has left its own, and a container gives each of
    # its workers the same number.
    mark, waiting = secrets.token_hex(8), 0
    while True:
        _own(str(top), top.lstat().st_mode)
        moved = False
        for path, mode in _beneath(str(top)):
            if not stat.S_ISDIR(mode):
                os.unlink(path)  # noqa: PTH108 as above
                continue
            _own(path, mode)
            for below, inner in _beneath(path):
                if stat.S_ISDIR(inner):
                    # Moving a directory writes its "..": it must be its owner's to write.
                    _own(below, inner)
                    waiting += 1
                    os.rename(below, f"{top}/{waiting}-{mark}.holdfast")  # noqa: PTH104
                    moved = True
                else:
                    os.unlink(below)  # noqa: PTH108 as above
            os.rmdir(path)  # noqa: PTH106 as above
        if not moved:
            top.rmdir()
            return


def _beneath(directory: str) -> list[tuple[str, int]]:
    """What is in a directory, and its kind, with the mode of directories."""
    with os.scandir(directory) as entries:
        return [
            (entry.path, entry.stat(follow_symlinks=False).st_mode)
            if entry.is_dir(follow_symlinks=False)
            else (entry.path, 0)
            for entry in entries
        ]


def _changed(full: str, path: str, *, deleted_as_files: bool) -> Changed:
    status = os.lstat(full)
    if reason := too_long(path):
        return Changed(path, "dropped", reason=reason)
    mode = stat.S_IMODE(status.st_mode) & 0o777
    if stat.S_ISDIR(status.st_mode):
        _own(full, status.st_mode)
        return Changed(path, "directory", mode, opaque=_attribute(full, "opaque") == b"y")
    if stat.S_ISLNK(status.st_mode):
        return Changed(path, "symlink", mode)
    if stat.S_ISREG(status.st_mode):
        if not mode & stat.S_IRUSR:
            os.chmod(full, mode | stat.S_IRUSR)  # noqa: PTH101 as above
        if deleted_as_files and _attribute(full, "whiteout") is not None:
            return Changed(path, "deleted")
        return Changed(path, "file", mode)
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        return Changed(path, "deleted")
    reason = next((told for test, told in _OTHERS if test(status.st_mode)), "no file")
    return Changed(path, "dropped", reason=reason)


def _own(directory: str, mode: int) -> None:
    """Let the owner list and change ``directory``."""
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(directory, stat.S_IMODE(mode) & 0o777 | stat.S_IRWXU)  # noqa: PTH101 as above


def _attribute(path: str | Path, name: str) -> bytes | None:
    """The kernel's own mark on ``path``, written with or without privileges."""
    for prefix in _PREFIXES:
        with contextlib.suppress(OSError):
            return os.getxattr(path, prefix + name, follow_symlinks=False)
    return None
