"""Changing a directory of the user's, path by path, each whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.base.errors import HoldfastError
from runtime.base.visible import escaped
from runtime.trees.entries import Entry, Kind, directory_entry, file_entry, link_entry, shown
from runtime.workspace.checkouts.taking import read_file
from runtime.workspace.walk import CREATE, LIST


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
            with _directory_of(root, put, make=False) as (at, name):
                _check(root, put, name, at)
                _remove(name, at)
    made = [(put, put.entry) for put in puts if put.entry is not None]
    for put, entry in made:
        with _directory_of(root, put, make=True) as (at, name):
            _make(root, put, entry, name, at)
    # The inner ones first, and all when what is in them is there: nobody may write to some.
    for put, entry in reversed(made):
        if entry.kind is Kind.DIRECTORY:
            with _directory_of(root, put, make=False) as (at, name):
                _set_mode(name, entry.mode, at, make=False)


@contextmanager
def _directory_of(root: Path, put: Put, *, make: bool) -> Iterator[tuple[int, str]]:
    """The directory of a path, open, and the path's name in it: no link is gone through to it, be
    it one that came into being just now.
    """
    *folders, name = put.path.split("/")
    at = os.open(root, LIST)
    try:
        for folder in folders:
            try:
                inner = _opened(folder, at, make=make)
            # A link is none, nor is a file.
            except (NotADirectoryError, FileNotFoundError) as error:
                raise _changed(root, put) from error
            os.close(at)
            at = inner
        yield at, name
    finally:
        os.close(at)


def _opened(name: str, at: int, *, make: bool) -> int:
    """A directory in another; with ``make`` also one that is not there yet."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
    return os.open(name, LIST | os.O_NOFOLLOW, dir_fd=at)


def _check(root: Path, put: Put, name: str, at: int) -> None:
    if _entry_of(name, at) != put.was:
        raise _changed(root, put)


def _changed(root: Path, put: Put) -> HoldfastError:
    return HoldfastError(
        f"{_told(root, put)} was changed meanwhile: it was left as it is, and so were those after"
        " it; give the command again"
    )


def _told(root: Path, put: Put) -> str:
    return escaped(shown(str(root / put.path)))


def _entry_of(name: str, at: int) -> Entry | None:
    """What a directory has of a name; of a directory not what is in it."""
    try:
        status = os.lstat(name, dir_fd=at)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return directory_entry(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return link_entry(os.readlink(name, dir_fd=at))
    return file_entry(read_file(name, at=at), status.st_mode)


def _is_there(name: str, at: int) -> bool:
    try:
        os.lstat(name, dir_fd=at)
    except FileNotFoundError:
        return False
    return True


def _remove(name: str, at: int) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(name, dir_fd=at).st_mode):
            with suppress(OSError):
                # One that is not empty has something of the user's.
                os.rmdir(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)


def _make(root: Path, put: Put, entry: Entry, name: str, at: int) -> None:
    if entry.kind is Kind.DIRECTORY:
        # What comes into it is this user's to make: also where nobody might write to it before.
        _set_mode(name, entry.mode | stat.S_IRWXU, at, make=True)
        return
    kept = put.was is not None and put.was.kind is entry.kind
    # Beside its place, and so on one file system with it: it gets there whole, in one step.
    beside = f".holdfast-{secrets.token_hex(8)}"
    try:
        if entry.kind is Kind.LINK:
            os.symlink(entry.content, beside, dir_fd=at)
        else:
            with os.fdopen(os.open(beside, CREATE, 0o600, dir_fd=at), "wb") as opened:
                opened.write(put.data)
                os.fchmod(opened.fileno(), entry.mode)
        # At the last moment: what the user has saved meanwhile stays.
        if kept:
            _check(root, put, name, at)
        elif _is_there(name, at):
            raise HoldfastError(
                f"{_told(root, put)} came into being meanwhile: give the command again"
            )
        os.replace(beside, name, src_dir_fd=at, dst_dir_fd=at)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=at)


def _set_mode(name: str, mode: int, at: int, *, make: bool) -> None:
    made = _opened(name, at, make=make)
    try:
        os.fchmod(made, mode)
    finally:
        os.close(made)
