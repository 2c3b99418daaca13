"""Files that commands write for users."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from runtime.base.errors import HoldfastError, InputError, ReaderGone
from runtime.base.failpoints import failpoint
from runtime.base.places import expanded, is_directory, is_file

_READABLE = 0o666
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The numbers of a disk that is full, and of a file that may not be larger."""


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` once it is whole, and never before. A device
    or a pipe, ``/dev/stdout`` too, stays what it is and is written to.

    Raises:
        InputError: if it cannot be made there.
        HoldfastError: if there is no room for it.
        ReaderGone: if it is a pipe that nobody reads from any more.
    """
    path = expanded(path)
    if is_directory(path):
        raise InputError(f"{path} is a directory: name a file")
    try:
        with _opened(path) if _is_stream(path) else _moved_to(path) as file:
            yield file
    except OSError as error:
        # What it is filled from may fail, too, and has words of its own.
        if error.errno not in NO_ROOM:
            raise
        raise HoldfastError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def made_whole(directory: Path) -> Iterator[Path]:
    """A directory to fill that becomes ``directory`` once it is whole, and never before. One that
    is there already is its user's, and is filled itself.

    Raises:
        OSError: if it cannot be made; what the block raises names the place in ``directory``.
    """
    from runtime.sandbox.layers import remove_tree

    if os.path.lexists(directory):
        yield directory
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Beside its place, as a file is.
        beside = Path(tempfile.mkdtemp(prefix=".holdfast-export-", dir=directory.parent))
    except OSError as error:
        error.filename = str(directory)
        raise
    try:
        yield beside
        failpoint("export.before_move")
        beside.rename(directory)
    except OSError as error:
        name = os.fsdecode(error.filename or "")
        # What is to be read, such as the archive, is named as it is.
        if Path(name).is_relative_to(beside):
            error.filename = str(directory / Path(name).relative_to(beside))
        raise
    # After the move there is nothing here any more.
    finally:
        remove_tree(beside)


def _is_stream(path: Path) -> bool:
    if not os.path.exists(path):  # noqa: PTH110 - as in runtime/base/places.py
        return False
    # A regular file may be reached by the process's own descriptor, whose name must stay.
    name = path.readlink() if path.is_symlink() else path
    return not is_file(path) or name.parent.resolve().is_relative_to("/proc")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("wb")
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with file:
            yield file
    except BrokenPipeError as error:
        raise ReaderGone("nobody reads what is written") from error


@contextmanager
def _moved_to(path: Path) -> Iterator[IO[bytes]]:
    try:
        # Beside its place: only within one file system is a move one step.
        made = tempfile.NamedTemporaryFile(  # noqa: SIM115 - it is closed before it moves
            dir=path.parent, prefix=f".{path.name}.", delete=False
        )
    except OSError as error:
        raise _unwritable(path, error) from None
    beside = Path(made.name)
    try:
        with made:
            yield made
        # A temporary file is its owner's alone; this one is to be as any program would make it.
        beside.chmod(_READABLE & ~_umask())
        try:
            beside.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from None
    # After the move there is nothing here any more.
    finally:
        beside.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {error.strerror}")


def _umask() -> int:
    """The process's own mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
