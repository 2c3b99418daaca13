"""Files that commands write for users."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from runtime.base.errors import HoldfastError, InputError
from runtime.base.places import expanded

_READABLE = 0o666
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The numbers of a disk that is full, and of a file that may not be larger."""


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` once it is whole, and never before.

    Raises:
        InputError: if it cannot be made there.
        HoldfastError: if there is no room for it.
    """
    path = expanded(path)
    try:
        # Beside its place: only within one file system is a move one step.
        made = tempfile.NamedTemporaryFile(  # noqa: SIM115 - it is closed before it moves
            dir=path.parent, prefix=f".{path.name}.", delete=False
        )
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    beside = Path(made.name)
    try:
        try:
            with made:
                yield made
        except OSError as error:
            # What it is filled from may fail, too, and has words of its own.
            if error.errno not in NO_ROOM:
                raise
            raise HoldfastError(f"{path} cannot be written: {error.strerror}") from error
        # A temporary file is its owner's alone; this one is to be as any program would make it.
        beside.chmod(_READABLE & ~_umask())
        try:
            beside.replace(path)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
    # After the move there is nothing here any more.
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    """The process's own mask, which can only be read by setting it."""
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask
