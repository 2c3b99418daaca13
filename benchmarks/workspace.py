"""What an effect on a job's workspace costs: bytes, writes and milliseconds, beside git.

``python -m benchmarks.workspace`` makes directories of 100 to 100,000 files and runs commands in
them that change none, one or 100 files: in an overlay, whose upper layer is the change, and in the
files themselves, which are then looked through. ``git add -A && git commit`` gets the same changes
of the same tree in the same run, with git's defaults and a base that is packed, as a clone is.
Times are medians of several: by the clock, which says how busy the machine was too, and of
processors, of all processes that took part. An effect's include the sandbox, taking the change in,
archiving it, and bringing the checkout to the new version.

The base is taken in, archived and laid out once a size for both ways; what that takes is told on
stderr, and is in no row.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from activities.commands import Commands
from activities.contracts import HeldVersion, WorkspaceChange
from activities.setups import Setups
from activities.versions import Versions
from benchmarks.blocks import write_block
from runtime.archive.job import JobArchive
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.trees import Trees, tree_key
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.workspace.checkouts.checkout import Checkouts
from runtime.workspace.checkouts.excluded import excluded
from runtime.workspace.checkouts.taking import Digests, read_file, take

BLOCK = "workspace"
_PR_SET_CHILD_SUBREAPER = 36
SIZES = (100, 1_000, 10_000, 100_000)
CHANGES = (0, 1, 100)
REPEATS = 5
REPEATS_OF_MOST = 3
"""At the most files, where looking through all of them takes seconds."""
_GIT = {
    # What the machine's user has set is nobody else's.
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "b" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "b@example.org" for who in ("AUTHOR", "COMMITTER")},
}
HEADER = """\
| files | changed | way | ms an effect | of processors | writes | bytes archived \
| git add && commit, ms | of processors |
|--:|--:|---|--:|--:|--:|--:|--:|--:|"""


class Counting(DirectoryStore):
    """A directory store that counts what is written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.writes = self.bytes = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Count what is new."""
        written = super().put_if_absent(key, data)
        if written:
            self.writes += 1
            self.bytes += len(data)
        return written


@dataclass(frozen=True)
class Took:
    """Milliseconds by the clock, and of processors."""

    ms: float
    processor_ms: float


@dataclass(frozen=True)
class Row:
    """One way of tracking at one size: times, writes and bytes of an effect."""

    files: int
    changed: int
    way: str
    effect: Took
    writes: float
    bytes: float
    git: Took


def shell(changed: int, number: int, files: int) -> str:
    """A command that changes so many files, and others each time."""
    if not changed:
        return ":"
    # Spread over all directories, as a change of one alone would be cheap to take in.
    step = max(files // changed, 1)
    return (
        f"for i in $(seq 0 {step} {step * changed - 1});"
        f" do echo {number} > d$((i % 100))/f$i.txt; done"
    )


def lay_out(root: Path, files: int) -> None:
    """A directory of small files in up to a hundred others."""
    for number in range(min(files, 100)):
        (root / f"d{number}").mkdir(parents=True)
    for number in range(files):
        # A path of pathlib costs as much as the file.
        with open(f"{root}/d{number % 100}/f{number}.txt", "w") as file:  # noqa: PTH123
            file.write(f"{number}\n" * 20)


def git(root: Path, *arguments: str, fails: bool = False) -> None:
    """Run git in ``root``; what ``fails`` ends with 1."""
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, env={**os.environ, **_GIT}
    )
    if done.returncode != fails:
        raise RuntimeError(f"git {arguments}: {done.stderr.decode()}")


def commit_base(root: Path) -> None:
    """A repository of the directory, with one commit, all in one pack."""
    git(root, "init", "-q")
    # Files above the threshold go to a pack at once; the option holds for this command alone.
    git(root, "-c", "core.bigFileThreshold=1", "add", "-A")
    git(root, "commit", "-q", "-m", "base")


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say on stderr how long something took that is in no row."""
    began, had = time.perf_counter(), processor_seconds()
    yield
    took, used = time.perf_counter() - began, processor_seconds() - had
    print(f"{what}: {took:,.1f} s, {used:,.1f} s of processors", file=sys.stderr, flush=True)


def timed(repeats: int, repeat: Callable[[], None]) -> Took:
    """The medians of some runs."""
    took, used = [], []
    for _ in range(repeats):
        began, had = time.perf_counter(), processor_seconds()
        repeat()
        took.append((time.perf_counter() - began) * 1000)
        used.append((processor_seconds() - had) * 1000)
    return Took(statistics.median(took), statistics.median(used))


def adopt() -> None:
    """Become the parent of what bubblewrap leaves behind, the first processes of its sandboxes,
    which have waited for their commands: what these used would be counted nowhere.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_seconds() -> float:
    """What this process, its children, and theirs have used that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


class Base:
    """A directory of ``files`` files, taken in and archived once, for the jobs of both ways."""

    def __init__(self, top: Path, files: int) -> None:
        self.source, self.files = top / "source", files
        self.store = Counting(top / "archive")
        self.trees = Trees(self.store)
        self.checkouts = Checkouts(top / "workspaces", self.trees)
        self.digests = Digests()
        self._numbers = itertools.count(1)
        with told(f"{files:,} files: made"):
            lay_out(self.source, files)
        with told(f"{files:,} files: taken in"):
            tree = take(self.source, excluded((".git/",)), self.digests).tree
        with told(f"{files:,} files: archived"):
            written = self.trees.write_base(tree, lambda path: read_file(self.source / path)[0])
        self.version = written.tree.version
        with told(f"{files:,} files: committed to git"):
            commit_base(self.source)

    def command(self, changed: int) -> str:
        """One that changes so many files to what nobody has made of them before."""
        return shell(changed, next(self._numbers), self.files)

    def commit(self, changed: int) -> None:
        """A command, ``git add -A`` and ``git commit``, which has nothing to do where nothing
        changed.
        """
        subprocess.run(["sh", "-c", self.command(changed)], cwd=self.source, check=True)
        git(self.source, "add", "-A")
        git(self.source, "commit", "-q", "-m", "effect", fails=changed == 0)


class Job:
    """A job's workspace, outside of Temporal."""

    def __init__(self, base: Base, way: str) -> None:
        self.base, self.key = base, JobKey(batch="bench", job=way)
        versions = Versions(base.checkouts)
        # In place of what this host was found to be able to.
        versions.overlays = self.linked = way == "overlay"
        self.commands = Commands(versions, Setups(versions), base.digests)
        self.version = base.version
        self.effects = 0

    def effect(self, changed: int) -> None:
        """One command, archived, and the files at the version after it."""
        command = self.base.command(changed)
        change = WorkspaceChange(
            key=self.key,
            turn=1,
            effect=self.effects,
            held=HeldVersion(version=self.version),
            writable=Writable(),
            operation="sh",
            arguments={"command": command, "timeout": 60.0, "stdin": "", "env": {}},
        )
        ran = self.commands.run(change, threading.Event(), lambda line: None)
        uses = [tree_key(ran.version)] if ran.version != self.version else []
        archive = JobArchive.of(self.base.store, self.key)
        archive.write_effect("run", 1, self.effects, {"value": ran.value}, uses, ran.texts)
        self.effects += 1
        self.version = ran.version
        with self.base.checkouts.of(self.key, linked=self.linked).at(self.version):
            pass


def rows(files: int) -> list[Row]:
    """All ways and changes at one size."""
    found = []
    repeats = REPEATS_OF_MOST if files == SIZES[-1] else REPEATS
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        base = Base(Path(directory), files)
        jobs = {way: Job(base, way) for way in ("overlay", "look through")}
        for way, job in jobs.items():
            with told(f"{files:,} files: laid out, first effect: {way}"):
                job.effect(0)
        for changed in CHANGES:
            base.commit(changed)
            beside = timed(repeats, partial(base.commit, changed))
            for way, job in jobs.items():
                job.effect(changed)
                writes, size = base.store.writes, base.store.bytes
                took = timed(repeats, partial(job.effect, changed))
                writes, size = base.store.writes - writes, base.store.bytes - size
                found.append(
                    Row(files, changed, way, took, writes / repeats, size / repeats, beside)
                )
    return found


def table(found: list[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        f"| {row.files:,} | {row.changed} | {row.way} | {_told(row.effect)} | {row.writes:.0f}"
        f" | {row.bytes:,.0f} | {_told(row.git)} |"
        for row in found
    ]
    return "\n".join([HEADER, *lines])


def _told(took: Took) -> str:
    return f"{took.ms:,.0f} | {took.processor_ms:,.0f}"


def main() -> None:
    """Print the table, after each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=SIZES[0], help="the fewest files")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the most files")
    parser.add_argument("--write", type=Path, help="write the table into this document")
    arguments = parser.parse_args()
    adopt()
    found: list[Row] = []
    for files in SIZES:
        if not arguments.least <= files <= arguments.most:
            continue
        found += rows(files)
        print(table(found), flush=True)
        if arguments.write is not None:
            # The largest takes long: what is known by then is not lost with it.
            write_block(arguments.write, BLOCK, table(found))


if __name__ == "__main__":
    main()
