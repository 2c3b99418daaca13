"""Paths and URLs as users write them: one that leads nowhere is bad input, and no error of
Python's.
"""

from __future__ import annotations

import os
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
