"""What a tree has at a path: a file, a symbolic link or a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeGuard

from runtime.base.digests import digest_bytes

PERMISSIONS = 0o777
"""The bits of a mode that a version keeps: setuid, setgid and the sticky bit are dropped."""

DIRECTORY_MODE = 0o755
"""The mode of a directory that nobody made by itself."""


class Kind(StrEnum):
    """What an entry is, by one letter."""

    FILE = "f"
    LINK = "l"
    DIRECTORY = "d"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the archive has a file's bytes: the object's key, and the offset in its data."""

    key: str
    offset: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a tree.

    ``content`` is a file's digest (``sha256:...``) or a link's target, ``size`` a file's bytes.
    ``spot`` says where the archive has them, ``depth`` which change after the base brought the
    entry; they are no part of what it is.
    """

    kind: Kind
    mode: int = 0o644
    size: int = 0
    content: str = ""
    spot: Spot | None = field(default=None, compare=False)
    depth: int = field(default=0, compare=False)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind is Kind.FILE


def file_entry(data: bytes, mode: int = 0o644) -> Entry:
    """A file with these bytes."""
    return Entry(Kind.FILE, mode & PERMISSIONS, len(data), digest_bytes(data))


def link_entry(target: str) -> Entry:
    """A symbolic link. Links have no mode of their own."""
    return Entry(Kind.LINK, PERMISSIONS, 0, target)


def directory_entry(mode: int = DIRECTORY_MODE) -> Entry:
    """A directory, without what is in it."""
    return Entry(Kind.DIRECTORY, mode & PERMISSIONS)


def is_directory(entry: Entry | None) -> TypeGuard[Entry]:
    """Whether something is there, and it is a directory."""
    return entry is not None and entry.kind is Kind.DIRECTORY


Changes = Mapping[str, Entry | None]
"""What became of paths, relative and without ``.`` or ``..``; None: it is gone, with all beneath.

A directory's entry says that it is there, with that mode; what is in it has paths of its own.
"""


def shown(path: str) -> str:
    """A path as text: bytes that are no UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
