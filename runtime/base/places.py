"""Paths and URLs as users write them: one that leads nowhere is bad input, and no error of
Python's.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from runtime.base.errors import InputError
from runtime.base.quoted import shown


def expanded(path: Path | str) -> Path:
    """``path`` with the home directory that it begins with (``~``, ``~user``).

    Raises:
        InputError: if there is no such user, or no path has such a text.
    """
    if "\0" in str(path):
        raise InputError(f"expected a path, got {shown(str(path))}")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"no user has the home directory {shown(Path(path).parts[0])}") from None


def split_url(url: str) -> SplitResult:
    """The parts of ``url``.

    Raises:
        InputError: if it is none; it is not repeated, as it may hold a secret.
    """
    try:
        return urlsplit(url)
    except ValueError:
        raise InputError("expected a URL, got one whose host cannot be read") from None


# Those of ``Path`` raise where a name is too long, or a directory above may not be searched.
def is_directory(path: Path | str) -> bool:
    """Whether a directory is there."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: Path | str) -> bool:
    """Whether a regular file is there."""
    return os.path.isfile(path)  # noqa: PTH113


def make_private(path: Path) -> None:
    """Make a directory for this user alone, if it is not there. Into those above it that are not
    there either nobody else may put anything, whatever the umask: who could would put another one
    in its place.
    """
    for above in reversed([one for one in path.parents if not one.exists()]):
        above.mkdir(exist_ok=True, mode=0o755)
    path.mkdir(exist_ok=True, mode=0o700)


def read_regular(path: Path | str, most: int) -> bytes:
    """The bytes of a file at whose path somebody else may have put anything: to open a pipe waits
    for its writer, and a device may never end.

    Raises:
        IsADirectoryError: if it is a directory.
        OSError: if it cannot be read: with ``EINVAL`` if it is no file, with ``EFBIG`` if it has
            more than ``most`` bytes.
    """
    # A Path costs as much as reading.
    with open(path, "rb", buffering=0, opener=_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
        return file.readall()


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
