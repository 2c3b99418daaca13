"""Changing a directory of the user's, path by path, each whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.base.errors import HoldfastError
from runtime.trees.entries import Entry, Kind, directory_entry, file_entry, link_entry
from runtime.workspace.checkouts.taking import read_file


@dataclass(frozen=True)
class Put:
    """One path: what is there (``was``), and what is to be (None: nothing) with a file's bytes."""

    path: str
    was: Entry | None
    entry: Entry | None
    data: bytes = b""


def put_all(root: Path, puts: Iterable[Put]) -> None:
    """Make each path what it is to be: what goes first, then what comes.

    Raises:
        HoldfastError: at the first that is not any more what it was; the others stay as they are.
        OSError: if the host refuses.
    """
    puts = list(puts)
    for put in puts:
        # Of another kind: a file cannot be put over a directory, nor the other way round.
        if put.entry is None or (put.was is not None and put.was.kind is not put.entry.kind):
            _check(root, put)
            _remove(root / put.path)
    for put in puts:
        if put.entry is not None:
            _make(root, put, put.entry)


def _check(root: Path, put: Put) -> None:
    if entry_of(root / put.path) != put.was:
        raise HoldfastError(
            f"{root / put.path} was changed meanwhile: it was left as it is, and so were those"
            " after it; give the command again"
        )


def entry_of(place: Path) -> Entry | None:
    """What is at a place; of a directory not what is in it."""
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return directory_entry(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return link_entry(os.readlink(place))  # noqa: PTH115 bytes that are no UTF-8
    return file_entry(read_file(place)[0], status.st_mode)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        with suppress(OSError):
            # One that is not empty has something of the user's.
            place.rmdir()
    else:
        place.unlink(missing_ok=True)


def _make(root: Path, put: Put, entry: Entry) -> None:
    place = root / put.path
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind is Kind.DIRECTORY:
        place.mkdir(exist_ok=True)
        # The process's mask has cut the mode of a directory that was just made.
        place.chmod(entry.mode)
        return
    kept = put.was is not None and put.was.kind is entry.kind
    # Beside its place, and so on one file system with it: it gets there whole, in one step.
    file, name = tempfile.mkstemp(prefix=".holdfast-", dir=place.parent)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(put.data)
            os.fchmod(opened.fileno(), entry.mode)
        if entry.kind is Kind.LINK:
            Path(name).unlink()
            os.symlink(entry.content, name)  # noqa: PTH211 bytes that are no UTF-8
        # At the last moment: what the user has saved meanwhile stays.
        if kept:
            _check(root, put)
        elif os.path.lexists(place):
            raise HoldfastError(f"{place} came into being meanwhile: give the command again")
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)
