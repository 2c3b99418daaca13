"""An object store in a directory: one file an object, atomic, durable, safe with many processes.

A file is written without a name (``O_TMPFILE``), synced, and then linked to its name, which fails
if the name is taken; then its directory is synced. So a kill at any moment leaves either the whole
object or nothing, not even a leftover. Objects are for their owner's eyes alone (0600, in
directories of 0700): they are what models were told. Where the file system has no ``O_TMPFILE``, a
named file under ``.tmp`` takes its place; leftovers there are never listed, and a process that
writes such files removes those that are a day old.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runtime.archive.stores.tries import check_try
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.base.places import make_private, read_regular

_TMP = ".tmp"
_LEFTOVER = "holdfast-"
_NO_NAMES = frozenset({"", ".", ".."})
_LEFTOVER_AGE_S = 86_400
_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700
_O_TMPFILE = getattr(os, "O_TMPFILE", None)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_BYTES = 5 << 30
"""What S3 takes in one piece: no object has more."""
_NOT_OURS = {errno.EINVAL, errno.EFBIG, errno.ELOOP, errno.ENXIO}
"""How ``read_regular`` refuses a pipe or a device, a large file, a link to itself, and a socket."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
# How file systems and old kernels refuse O_TMPFILE: open(2) names EISDIR, ENOENT and EOPNOTSUPP.
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EPERM}


class DirectoryStore:
    """Objects as files under ``root``, which is created if it does not exist.

    Raises:
        ArchiveError: if ``root`` cannot be created.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._prefix = str(self.root).rstrip("/") + "/"
        try:
            make_private(self.root)
        except OSError as error:
            raise ArchiveError(
                f"cannot create the archive directory {self.root}: {error.strerror}"
            ) from error
        # A file without a name is given one by its place in /proc.
        self._unnamed = _O_TMPFILE is not None and Path("/proc/self/fd").is_dir()
        self._tidied = False
        self._known: set[str] = set()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``.

        The object, its name and every directory above it are on disk when this returns.
        """
        path = self._name(key)
        try:
            try:
                return self._created(path, data)
            except FileNotFoundError:
                # Another process deleted a job, and its directories with it.
                self._known.clear()
                return self._created(path, data)
        except OSError as error:
            advice = (
                "; make room: what could not be written is tried again"
                if error.errno in _FULL
                else ""
            )
            raise ArchiveError(f"cannot write {path}: {error.strerror}{advice}") from error

    def _created(self, path: str, data: bytes) -> bool:
        parent, _ = os.path.split(path)
        self._make_directory(parent)
        # One descriptor for the name and the sync: opening costs as much as linking.
        folder = os.open(parent, _DIRECTORY)
        try:
            created = self._write(folder, path, data)
            # Also when the name was taken: another process may have linked it and not yet synced
            # the directory, and what our caller reads from it must not be lost afterwards.
            failpoint("store.directory.before_sync")
            os.fsync(folder)
        finally:
            os.close(folder)
        return created

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``.

        Raises:
            ObjectCorrupt: if no file of ours is there, but a pipe, a device or the like.
        """
        if not _is_key(key):
            # Only what somebody made names it so: there can be no such object.
            raise ObjectMissing(f"{key!r} is not an object key")
        path = self._name(key)
        try:
            return read_regular(path, _MOST_BYTES)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise ObjectMissing(f"the archive has no object {key} (in {self.root})") from None
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise ObjectCorrupt(f"{key}: {error.strerror}") from error
            raise ArchiveError(f"cannot read {path}: {error.strerror}") from error

    def list(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``.

        Reads one directory at a time, and only those that can hold the prefix.
        """
        folder, _, _ = prefix.rpartition("/")
        # No key begins so, and the path could lead out of the root.
        if folder and not _is_key(folder):
            return
        yield from map(_text, self._walk(folder, prefix))

    def folders(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        if prefix and not _is_key(prefix.removesuffix("/")):
            return
        try:
            with os.scandir(self.root / prefix) as entries:
                names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise ArchiveError(f"cannot list {self.root / prefix}: {error.strerror}") from error
        yield from (_text(name) for name in names if prefix or name != _TMP)

    def remove_try(self, key: str) -> None:
        """See ``Forgetting``."""
        check_try(key)
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        """See ``Removing``. Directories that it leaves empty go too: they would be listed."""
        path = self._path(key)
        try:
            path.unlink(missing_ok=True)
            folder = path.parent
            while folder != self.root and _is_empty(folder):
                # Somebody may write into it in between: then it stays.
                with suppress(OSError):
                    folder.rmdir()
                self._known.discard(str(folder))
                folder = folder.parent
            if folder.is_dir():
                _sync_directory(folder)
        except OSError as error:
            raise ArchiveError(f"cannot remove {path}: {error.strerror}") from error

    def discard(self, key: str) -> None:
        """See ``Discarding``."""
        path = self._path(key)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ArchiveError(f"cannot remove {path}: {error.strerror}") from error

    def __str__(self) -> str:
        return str(self.root)

    def _walk(self, folder: str, prefix: str) -> Iterator[str]:
        """The keys below ``folder`` that start with ``prefix``; no call of itself, for whoever may
        write here nests directories as deep as they like.
        """
        left = [*self._entries(f"{folder}/" if folder else "", prefix)]
        while left:
            name = left.pop()
            if not name.endswith("/"):
                yield name
            elif name != f"{_TMP}/":
                left += self._entries(name, prefix)

    def _entries(self, start: str, prefix: str) -> Iterator[str]:
        """What is in the directory ``start`` and may lead to the prefix, the last first;
        directories with a slash.
        """
        begins = prefix[len(start) :]
        try:
            with os.scandir(self.root / start) as listing:
                # By its name first: most of a directory is other turns'.
                entries = [entry for entry in listing if entry.name.startswith(begins)]
                names = [
                    f"{e.name}/" if e.is_dir(follow_symlinks=False) else e.name for e in entries
                ]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise ArchiveError(f"cannot list {self.root / start}: {error.strerror}") from error
        # A directory sorts as its name with the slash, which is how its keys sort among their
        # neighbours.
        yield from (f"{start}{name}" for name in sorted(names, reverse=True))

    def _path(self, key: str) -> Path:
        return Path(self._name(key))

    def _name(self, key: str) -> str:
        if not _is_key(key):
            raise ArchiveError(f"{key!r} is not an object key")
        return f"{self._prefix}{key}"

    def _make_directory(self, folder: str) -> None:
        """Create ``folder`` durably: a synced file in an unsynced directory is lost with it."""
        if folder in self._known:
            return
        parent, _ = os.path.split(folder)
        if not os.path.isdir(folder):  # noqa: PTH112
            self._make_directory(parent)
            with suppress(FileExistsError):
                os.mkdir(folder, _PRIVATE_DIRECTORY)  # noqa: PTH102
        # Also where it was there: whoever made it may have been killed before the sync.
        if folder != str(self.root):
            _sync_directory(parent)
        self._known.add(folder)

    def _write(self, folder: int, path: str, data: bytes) -> bool:
        """Whether the name was free."""
        with suppress(FileExistsError):
            self._link(folder, path, data)
            return True
        return False

    def _link(self, folder: int, path: str, data: bytes) -> None:
        if not self._unnamed:
            self._write_named(folder, path, data)
            return
        assert _O_TMPFILE is not None
        parent, name = os.path.split(path)
        try:
            descriptor = os.open(parent, _O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE_FILE)
        except OSError as error:
            # ENOENT also means that the directory is gone, which is no reason to give O_TMPFILE up.
            if error.errno not in _UNSUPPORTED or not Path(parent).is_dir():
                raise
            self._unnamed = False
            self._write_named(folder, path, data)
            return
        try:
            _write_all(descriptor, data)
            failpoint("store.directory.before_link")
            # With a directory's descriptor Python calls linkat with AT_SYMLINK_FOLLOW; without one
            # it calls link, which would link the symbolic link under /proc.
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(descriptor)

    def _write_named(self, folder: int, path: str, data: bytes) -> None:
        temporary = self.root / _TMP
        temporary.mkdir(exist_ok=True, mode=_PRIVATE_DIRECTORY)
        if not self._tidied:
            _remove_leftovers(temporary)
            self._tidied = True
        descriptor, name = tempfile.mkstemp(prefix=_LEFTOVER, dir=temporary)
        try:
            try:
                _write_all(descriptor, data)
            finally:
                os.close(descriptor)
            failpoint("store.directory.before_link")
            os.link(name, os.path.split(path)[1], dst_dir_fd=folder)
        finally:
            Path(name).unlink(missing_ok=True)


def _is_key(text: str) -> bool:
    """Whether an object, or a folder of some, may be called so: its path stays below the root, and
    is text.
    """
    parts = text.split("/")
    return (
        _NO_NAMES.isdisjoint(parts)
        and parts[0] != _TMP
        and "\0" not in text
        and (text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text))
    )


def _text(name: str) -> str:
    """What a file is called in a listing, of which all else is text: what is no UTF-8 is escaped.
    No key is called so, and nothing can be read by it.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_empty(folder: Path) -> bool:
    try:
        with os.scandir(folder) as listing:
            return next(listing, None) is None
    except FileNotFoundError:
        return True


def _remove_leftovers(temporary: Path) -> None:
    """Remove files that a killed process left; young ones may belong to a live process.

    Whoever writes one does so, and nobody else: what is read need be no archive, and its ``.tmp``
    anybody's.
    """
    oldest = time.time() - _LEFTOVER_AGE_S
    with suppress(OSError):
        for path in temporary.glob(f"{_LEFTOVER}*"):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime < oldest:
                    path.unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write and sync. A disk that fills up raises here, before the object has a name."""
    view = memoryview(data)
    while view:
        # A write may take a part only, as where the disk fills up or a signal comes.
        view = view[os.write(descriptor, view) :]
        failpoint("store.directory.mid_put")
    os.fsync(descriptor)


def _sync_directory(folder: str | Path) -> None:
    descriptor = os.open(folder, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
