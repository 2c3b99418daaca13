"""A bound of the kernel's on how many processes a command of root's has.

``RLIMIT_NPROC`` binds everybody but root, whatever namespace it is in. For root it is the control
group of the controller ``pids`` (Linux, ``admin-guide/cgroup-v1/pids.rst`` and ``cgroup-v2.rst``),
where this process may make one: in hierarchies of version 1, and in one of version 2 whose group
is its own (``Delegate=yes`` of systemd, or the root of what a container sees). Elsewhere there is
none, and a command is bounded by who looks at it alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from pathlib import Path
from typing import Self

_NAME = "holdfast-"
_numbers = itertools.count(1)


class ProcessGroup:
    """A group that holds a command's processes and threads, ``most`` at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def made(cls, most: int) -> Self | None:
        """A new group; None for who is not root, and where none can be made."""
        parent = _parent() if os.geteuid() == 0 else None
        if parent is None:
            return None
        group = cls(parent / f"{_NAME}{os.getpid()}-{next(_numbers)}")
        try:
            group.directory.mkdir()
            kind = group.directory / "cgroup.type"
            if kind.exists() and kind.read_text().strip() == "domain invalid":
                # Its parent has processes, so it can be but a part of that one's domain.
                kind.write_text("threaded")
            (group.directory / "pids.max").write_text(str(most))
        except OSError:
            group.remove()
            return None
        return group

    @property
    def entrance(self) -> Path:
        """The file to which a process' id is written that is to be in it (0: who writes)."""
        return self.directory / "cgroup.procs"

    def take(self, pid: int) -> None:
        """Have the process in it, and what it starts from now on; without effect if it is gone."""
        with contextlib.suppress(OSError):
            self.entrance.write_text(str(pid))

    def remove(self) -> None:
        """Remove the group; one that still has processes stays, until another worker starts."""
        with contextlib.suppress(OSError):
            self.directory.rmdir()


@functools.cache
def _parent() -> Path | None:
    """The group of this process, where it may make others in it."""
    with contextlib.suppress(OSError):
        parent = _of_version_1() or _of_version_2()
        if parent is not None and os.access(parent, os.W_OK):
            _sweep(parent)
            return parent
    return None


def _of_version_1() -> Path | None:
    path = _own("pids")
    return None if path is None else _mounted("cgroup", "pids", path)


def _of_version_2() -> Path | None:
    path = _own("")
    if path is None:
        return None
    group = _mounted("cgroup2", "", path)
    return group if group is not None and _may_divide(group, path) else None


def _own(controller: str) -> str | None:
    """The path of this process' group in a controller's hierarchy; that of version 2 names none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return None


def _may_divide(group: Path, path: str) -> bool:
    """Whether the groups below one of version 2 have the controller, from now on maybe.

    Whose group it is manages it: another's, as systemd's of a service, is left as it is.
    """
    if "pids" in (group / "cgroup.subtree_control").read_text().split():
        return True
    if path != "/" and not _is_delegated(group):
        return False
    (group / "cgroup.subtree_control").write_text("+pids")
    return True


def _is_delegated(group: Path) -> bool:
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _mounted(kind: str, option: str, path: str) -> Path | None:
    """Where the group of a path is, in a hierarchy of that kind that is mounted with the option."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, source = line.partition(" - ")
        root, directory = place.split()[3:5]
        filesystem, _, options = source.split(maxsplit=2)
        if filesystem == kind and (not option or option in options.split(",")):
            below = os.path.relpath(path, root)
            return None if below.startswith("..") else Path(directory) / below
    return None


def _sweep(parent: Path) -> None:
    """Remove what workers left that were killed; what is in use cannot be removed."""
    for group in parent.glob(f"{_NAME}*-*"):
        if not Path("/proc", group.name.split("-")[1]).exists():
            ProcessGroup(group).remove()
