"""A job's checkout on this host: a directory that is at one version of its workspace at a time.

::

    ROOT/bases/VERSION/               a base's files, which checkouts link to and nobody writes
    ROOT/bases/VERSION.lock           locked (shared) by who reads them
    ROOT/linked/BATCH/JOB/files/      the checkout
    ROOT/linked/BATCH/JOB/version     the version that it is at, and the boot in which it was made
    ROOT/linked/BATCH/JOB/lock        locked (shared) by who reads it, (exclusively) by who moves it
    ROOT/own/BATCH/JOB/...            the same, where commands write to the checkout itself: it
                                      links to nothing, and has the base's bytes where the file
                                      system lets files share them
    ROOT/running/...                  what is needed while something runs, locked by who runs it
    ROOT/aside/...                    what is being deleted

All of it can be lost: the archive has every version, and a checkout that is at none, because what
moved it was killed or the machine was, is made anew. ``tidying.py`` deletes what is too much.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from runtime.archive.trees import Trees
from runtime.base.failpoints import failpoint
from runtime.base.kept import Busy, Kept, put_in_place
from runtime.base.values import JobKey
from runtime.sandbox.layers import remove_tree
from runtime.trees.entries import Entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.laying import (
    clone_file,
    clones_work,
    lay,
    link_file,
    move_file,
    set_times,
    write_file,
)
from runtime.workspace.walk import LIST

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_WAIT_SECONDS = 30.0
"""How long a base is waited for, which is in use alone for as long as it takes to put it aside."""


class Checkouts:
    """The checkouts of this host, below the directory ``root``."""

    def __init__(self, root: Path, trees: Trees) -> None:
        self.root = root
        self.aside = root / "aside"
        self.trees = trees

    @cached_property
    def clones(self) -> bool:
        """Whether files here can share their bytes with others until one of them is written."""
        return clones_work(self.root)

    def of(self, key: JobKey, *, linked: bool) -> Checkout:
        """A job's. One that commands write to themselves must not be ``linked``."""
        kind = self.root / ("linked" if linked else "own")
        return Checkout(kind / _folder(key.batch) / _folder(key.job), self, linked)

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
        while True:
            top = Path(tempfile.mkdtemp(prefix=prefix, dir=running))
            # Who finds one that nobody has locked takes it for what a killed worker left, and may
            # find this one in between.
            with suppress(FileNotFoundError):
                file = os.open(top, LIST)
                fcntl.flock(file, fcntl.LOCK_SH)
                if top.is_dir():
                    break
                os.close(file)
        try:
            yield top
        finally:
            # Locked until it is gone: who tidies takes what nobody has locked for left over.
            remove_tree(top)
            os.close(file)

    def kept_base(self, version: str) -> Kept:
        """A base's directory on this host."""
        name = version.removeprefix("sha256:")
        return Kept(self.root / "bases" / name, self.root / "bases" / f"{name}.lock")

    def kept_setup(self, name: str) -> Kept:
        """The directory of a set-up on this host."""
        return Kept(self.root / "setups" / name, self.root / "setups" / f"{name}.lock")

    @contextmanager
    def base(self, version: str) -> Iterator[Path]:
        """A base's files, laid out once, which stay for as long as the block."""
        kept = self.kept_base(version)
        with kept.held(seconds=_WAIT_SECONDS, said=f"{kept.place} is being deleted"):
            if not kept.place.is_dir():
                self._make_base(version, kept.place)
            yield kept.place

    def _make_base(self, version: str, place: Path) -> None:
        with self.scratch("base-") as top:
            made = top / "files"
            made.mkdir()
            self.lay_out(version, made)
            failpoint("checkout.base.before_rename")
            # Another process may have been first: a directory that is not empty is not replaced.
            with suppress(OSError):
                put_in_place(made, place)

    def lay_out(self, version: str, place: Path) -> None:
        """Copy a version's files into an empty directory."""
        tree = self.trees.tree(version)
        lay(place, Tree().difference(tree), tree, self.write)

    def write(self, place: str, entry: Entry) -> None:
        """Make a file."""
        write_file(place, entry, self.trees.content(entry))


class Checkout:
    """One job's directory; see the module."""

    def __init__(self, place: Path, checkouts: Checkouts, linked: bool) -> None:
        self.files = place / "files"
        self.kept = Kept(place, place / "lock")
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
            # Most find it at the version that they want, and may all have it at once.
            with self._held(end):
                if self._version() == version:
                    self._use_base(version)
                    yield self.files
                    return
        with self._held(end, alone=True):
            self._move(version)
            self._use_base(version)
            # Killed from here on, it is at none: whoever writes to it may be half way.
            if alone:
                self._marker.unlink()
            # Still alone, also to read it: flock would let go in between to make the lock a shared
            # one.
            yield self.files

    def take_over(self, upper: Path, before: str, after: str) -> None:
        """Go from one version to another with the files that a command left in its layer over this
        directory, which are moved: to write them once more would cost as much as they did.

        It is not needed. If somebody reads the directory now, or the host refuses, whoever wants
        the version next brings the directory there from the archive.
        """
        with suppress(Busy, OSError), self._held(time.monotonic(), alone=True):
            if self._version() != before:
                return

            def put(place: str, entry: Entry) -> None:
                left = f"{upper}{place.removeprefix(str(self.files))}"
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
        put = self.kept.put_aside(self._checkouts.aside)
        if put is not None:
            # Who tidies may be at it already, and finishes what is left.
            with suppress(OSError):
                remove_tree(put)

    def _move(self, version: str) -> None:
        """Bring the directory to a version, from the one that it is at or from none."""
        trees, now = self._checkouts.trees, self._version()
        if now == version:
            return
        # With a version that the archive does not have any more, nothing can be compared.
        if now is None or now not in trees:
            # Whatever it is: a command may have put a link or a file there.
            remove_tree(self.files)
            self.files.mkdir(mode=0o700)
            with ExitStack() as held:
                put: Callable[[str, Entry], None] = self._checkouts.write
                if self._linked or self._checkouts.clones:
                    base = trees.version(version).base
                    place = held.enter_context(self._checkouts.base(base))
                    put = self._sharing(place, trees.tree(base))
                self._lay(Tree(), version, put)
        else:
            self._lay(trees.tree(now), version, self._checkouts.write)

    def _lay(self, before: Tree, version: str, put: Callable[[str, Entry], None]) -> None:
        """Make in the directory what leads from a tree to a version. Killed in between, it is at
        none.
        """
        after = self._checkouts.trees.tree(version)
        self._marker.unlink(missing_ok=True)
        failpoint("checkout.moving")
        lay(self.files, before.difference(after), after, put)
        self.arrived(version)

    def _sharing(self, base: Path, tree: Tree) -> Callable[[str, Entry], None]:
        """Files of the base are links to it: nobody writes to them, they are replaced. Where
        somebody does, they are files with its bytes.
        """
        places = {
            (entry.content, entry.mode): path for path, entry in tree.under() if entry.is_file
        }
        share = link_file if self._linked else clone_file

        def put(place: str, entry: Entry) -> None:
            # What a change brought has a later time than the base's file, and a link has the base's
            # own.
            path = places.get((entry.content, entry.mode)) if entry.depth == 0 else None
            if path is not None:
                with suppress(OSError):
                    share(f"{base}/{path}", place, entry)
                    return
            self._checkouts.write(place, entry)

        return put

    @property
    def _marker(self) -> Path:
        return self.kept.place / "version"

    def _version(self) -> str | None:
        try:
            version, boot = self._marker.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return version if boot == _boot() else None

    def _use_base(self, version: str) -> None:
        """Have the base that the files link to count as used: it takes no room while they do."""
        if self._linked:
            self._checkouts.kept_base(self._checkouts.trees.version(version).base).touch()

    def _held(self, end: float, *, alone: bool = False) -> AbstractContextManager[None]:
        seconds = end - time.monotonic()
        return self.kept.held(
            alone=alone, seconds=seconds, said=f"{self.files} is in use at another version"
        )


def _folder(name: str) -> str:
    """A name as that of a folder."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted in {".", ".."} else quoted


def _boot() -> str:
    """This boot of the machine: after another one, files that were written last may be lost."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"
