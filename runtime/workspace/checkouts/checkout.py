"""A job's checkout on this host: a directory that is at one version of its workspace at a time.

::

    ROOT/bases/VERSION/               a base's files, which checkouts link to and nobody writes
    ROOT/linked/BATCH/JOB/files/      the checkout
    ROOT/linked/BATCH/JOB/version     the version that it is at, and the boot in which it was made
    ROOT/linked/BATCH/JOB/lock        locked (shared) by who reads it, (exclusively) by who moves it
    ROOT/own/BATCH/JOB/...            the same, where commands write to the checkout itself: it
                                      links to nothing

All of it can be lost: the archive has every version, and a checkout that is at none, because what
moved it was killed or the machine was, is made anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from runtime.archive.trees import Trees
from runtime.base.failpoints import failpoint
from runtime.base.values import JobKey
from runtime.sandbox.layers import remove_tree
from runtime.trees.entries import Entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.laying import lay, move_file, set_times, write_file

_LOOK_SECONDS = 0.02
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Busy(Exception):
    """The checkout is held at another version, by a command that runs."""


class Checkouts:
    """The checkouts of this host, below the directory ``root``."""

    def __init__(self, root: Path, trees: Trees) -> None:
        self.root = root
        self.trees = trees

    def of(self, key: JobKey, *, linked: bool) -> Checkout:
        """A job's. One that commands write to themselves must not be ``linked``."""
        kind = self.root / ("linked" if linked else "own")
        return Checkout(kind / quote(key.batch, safe="") / quote(key.job, safe=""), self, linked)

    def forget(self, key: JobKey) -> None:
        """Remove what a job has here: it has ended.

        Raises:
            Busy: if somebody has it.
        """
        for linked in (True, False):
            self.of(key, linked=linked).forget()

    @contextmanager
    def scratch(self, prefix: str) -> Iterator[Path]:
        """A directory for as long as something runs, on the file system of the checkouts."""
        running = self.root / "running"
        running.mkdir(parents=True, exist_ok=True, mode=0o700)
        top = Path(tempfile.mkdtemp(prefix=prefix, dir=running))
        try:
            yield top
        finally:
            remove_tree(top)

    def base(self, version: str) -> Path:
        """A base's files, laid out once."""
        place = self.root / "bases" / version.removeprefix("sha256:")
        if place.is_dir():
            return place
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
        try:
            self.lay_out(version, made)
            failpoint("checkout.base.before_rename")
            # Another process may have been first: a directory that is not empty is not replaced.
            with suppress(OSError):
                made.rename(place)
        finally:
            if made.is_dir():
                remove_tree(made)
        return place

    def lay_out(self, version: str, place: Path) -> None:
        """Copy a version's files into an empty directory."""
        tree = self.trees.tree(version)
        lay(place, Tree().difference(tree), tree, self.write)

    def write(self, place: Path, entry: Entry) -> None:
        """Make a file."""
        write_file(place, entry, self.trees.content(entry))


class Checkout:
    """One job's directory; see the module."""

    def __init__(self, place: Path, checkouts: Checkouts, linked: bool) -> None:
        self.files = place / "files"
        self._place = place
        self._checkouts = checkouts
        self._linked = linked

    @contextmanager
    def at(self, version: str, *, alone: bool = False, seconds: float = 0.0) -> Iterator[Path]:
        """The directory, which stays at this version meanwhile.

        ``alone``: nobody else has it; then it may be written, and is at no version afterwards
        unless ``arrived`` says so. Nobody is waited for longer than ``seconds``.

        Raises:
            Busy: if somebody holds it in another way for longer.
        """
        end = time.monotonic() + seconds
        if not alone:
            with self._locked(fcntl.LOCK_SH, end):
                if self._version() == version:
                    yield self.files
                    return
        with self._locked(fcntl.LOCK_EX, end):
            self._move(version)
            if alone:
                self._marker.unlink()
            yield self.files

    def take_over(self, upper: Path, before: str, after: str) -> None:
        """Go from one version to another with the files that a command left in its layer over this
        directory, which are moved: to write them once more would cost as much as they did.

        It is not needed. If somebody reads the directory now, or the host refuses, whoever wants
        the version next brings the directory there from the archive.
        """
        with suppress(Busy, OSError), self._locked(fcntl.LOCK_EX, time.monotonic()):
            if self._version() != before:
                return

            def put(place: Path, entry: Entry) -> None:
                left = upper / place.relative_to(self.files)
                if not move_file(left, place, entry):
                    self._checkouts.write(place, entry)

            self._lay(self._checkouts.trees.tree(before), after, put)

    def settle(self, left: Iterable[str], before: Tree, after: Tree) -> None:
        """Make of the directory, which one has alone and in which a command has led from one tree
        to another, the latter's checkout: without what is ``left`` over, with the times that files
        have elsewhere.
        """
        for path in left:
            remove_tree(self.files / path)
        set_times(self.files, before.difference(after))
        self.arrived(after.version)

    def arrived(self, version: str) -> None:
        """Say that the directory, which one has alone, is at a version now."""
        made = self._marker.with_suffix(".new")
        made.write_text(f"{version} {_boot()}\n")
        made.replace(self._marker)

    def forget(self) -> None:
        """Remove the checkout: its job has ended, or has never been here.

        Raises:
            Busy: if somebody has it.
        """
        if not self._place.is_dir():
            return
        with self._locked(fcntl.LOCK_EX, time.monotonic()):
            self._marker.unlink(missing_ok=True)
            if self.files.is_dir():
                remove_tree(self.files)
        with suppress(OSError):
            shutil.rmtree(self._place)

    def _move(self, version: str) -> None:
        """Bring the directory to a version, from the one that it is at or from none."""
        trees, now = self._checkouts.trees, self._version()
        if now == version:
            return
        if now is None or now not in trees:
            if self.files.is_dir():
                remove_tree(self.files)
            self.files.mkdir(mode=0o700)
            base = trees.version(version).base
            before = Tree()
            link = (
                self._linking(self._checkouts.base(base), trees.tree(base))
                if self._linked
                else None
            )
        else:
            before, link = trees.tree(now), None
        self._lay(before, version, link or self._checkouts.write)

    def _lay(self, before: Tree, version: str, put: Callable[[Path, Entry], None]) -> None:
        """Make in the directory what leads from a tree to a version. Killed in between, it is at
        none.
        """
        after = self._checkouts.trees.tree(version)
        self._marker.unlink(missing_ok=True)
        failpoint("checkout.moving")
        lay(self.files, before.difference(after), after, put)
        self.arrived(version)

    def _linking(self, base: Path, tree: Tree) -> Callable[[Path, Entry], None]:
        """Files of the base are links to it: nobody writes to them, they are replaced."""
        places = {
            (entry.content, entry.mode): path for path, entry in tree.under() if entry.is_file
        }

        def put(place: Path, entry: Entry) -> None:
            path = places.get((entry.content, entry.mode)) if entry.depth == 0 else None
            if path is None:
                self._checkouts.write(place, entry)
                return
            place.unlink(missing_ok=True)
            try:
                os.link(base / path, place, follow_symlinks=False)
            except OSError:  # too many links, or a file system without
                self._checkouts.write(place, entry)

        return put

    @property
    def _marker(self) -> Path:
        return self._place / "version"

    def _version(self) -> str | None:
        try:
            version, boot = self._marker.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return version if boot == _boot() else None

    @contextmanager
    def _locked(self, how: int, end: float) -> Iterator[None]:
        self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self._place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(file, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise Busy(f"{self.files} is in use at another version") from None
                    time.sleep(_LOOK_SECONDS)
            yield
        finally:
            os.close(file)


def _boot() -> str:
    """This boot of the machine: after another one, files that were written last may be lost."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"
