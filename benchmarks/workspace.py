"""What an effect on a job's workspace costs: bytes, writes and milliseconds, beside git.

``python -m benchmarks.workspace`` makes directories of 100 to 100,000 files and runs commands in
them that change none, one or 100 files: in an overlay, whose upper layer is the change, and in the
files themselves, which are then looked through. ``git add -A && git commit`` gets the same changes
of the same tree in the same run. Times are medians of several: by the clock, which says how busy
the machine was too, and of processors, of all processes that took part. An effect's include the
sandbox, taking the change in, archiving it, and bringing the checkout to the new version.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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
KEY = JobKey(batch="bench", job="job")
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
    step = max(files // changed, 1)
    return (
        f"for i in $(seq 0 {step} {step * changed - 1});"
        f" do echo {number} > d$((i % 100))/f$i.txt; done"
    )


def lay_out(root: Path, files: int) -> None:
    """A directory of small files in up to a hundred others."""
    for number in range(files):
        folder = root / f"d{number % 100}"
        folder.mkdir(exist_ok=True, parents=True)
        (folder / f"f{number}.txt").write_text(f"{number}\n" * 20)


def git(root: Path, *arguments: str) -> None:
    """Run git in ``root``."""
    who = ("-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "gc.auto=0")
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def timed(repeat: Callable[[int], None]) -> Took:
    """The medians of some runs."""
    took, used = [], []
    for number in range(REPEATS):
        began, had = time.perf_counter(), processor_seconds()
        repeat(number)
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


def git_took(source: Path, changed: int, files: int) -> Took:
    """A command, ``git add -A`` and a commit."""

    def once(number: int) -> None:
        command = shell(changed, number + 1000 * changed + 1, files)
        subprocess.run(["sh", "-c", command], cwd=source, check=True)
        git(source, "add", "-A")
        git(source, "commit", "-q", "--allow-empty", "-m", "effect")

    return timed(once)


class Job:
    """A job's workspace with ``files`` files, outside of Temporal."""

    def __init__(self, top: Path, source: Path, way: str) -> None:
        self.store = Counting(top / f"archive-{way}")
        self.trees = Trees(self.store)
        self.checkouts = Checkouts(top / f"workspaces-{way}", self.trees)
        versions = Versions(self.checkouts)
        versions.overlays = way == "overlay"
        self.commands = Commands(versions, Setups(versions), Digests())
        tree = take(source, excluded((".git/",)), Digests()).tree
        self.version = self.trees.write_base(
            tree, lambda path: read_file(source / path)[0]
        ).tree.version
        self.linked = way == "overlay"
        self.effects = 0

    def effect(self, command: str) -> None:
        """One command, archived, and the files at the version after it."""
        change = WorkspaceChange(
            key=KEY,
            turn=1,
            effect=self.effects,
            held=HeldVersion(version=self.version),
            writable=Writable(),
            operation="sh",
            arguments={"command": command, "timeout": 60.0, "stdin": "", "env": {}},
        )
        ran = self.commands.run(change, threading.Event(), lambda line: None)
        uses = [tree_key(ran.version)] if ran.version != self.version else []
        archive = JobArchive.of(self.store, KEY)
        archive.write_effect("run", 1, self.effects, {"value": ran.value}, uses, ran.texts)
        self.effects += 1
        self.version = ran.version
        with self.checkouts.of(KEY, linked=self.linked).at(self.version):
            pass


def rows(files: int) -> list[Row]:
    """All ways and changes at one size."""
    found = []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        top = Path(directory)
        source = top / "source"
        lay_out(source, files)
        jobs = {way: Job(top, source, way) for way in ("overlay", "look through")}
        git(source, "init", "-q")
        git(source, "add", "-A")
        git(source, "commit", "-q", "-m", "base")
        for changed in CHANGES:
            beside = git_took(source, changed, files)
            for way, job in jobs.items():
                job.effect(":")
                writes, size = job.store.writes, job.store.bytes
                took = timed(
                    lambda number, job=job, changed=changed: job.effect(  # type: ignore[misc]
                        shell(changed, number + 1000 * changed + 1, files)
                    )
                )
                writes, size = job.store.writes - writes, job.store.bytes - size
                found.append(
                    Row(files, changed, way, took, writes / REPEATS, size / REPEATS, beside)
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
