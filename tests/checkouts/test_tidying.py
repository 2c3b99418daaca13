"""What a host keeps is bounded, and nothing that somebody has is deleted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.setups import Setups
from activities.versions import Versions
from runtime.archive.stores import open_store
from runtime.archive.trees import Trees
from runtime.base.errors import InputError
from runtime.base.kept import Busy
from runtime.base.kept_bytes import KEPT_BYTES, kept_bytes
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.trees.entries import file_entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkout, Checkouts
from runtime.workspace.checkouts.tidying import disk_bytes, kept_in, tidy, told

_ROOT = Path(__file__).resolve().parents[2]
LARGE = 1 << 20


class Host:
    """The workspaces of a host, on an archive in a directory."""

    def __init__(self, path: Path) -> None:
        self.root = path / "workspaces"
        self.store = path / "archive"
        self.trees = Trees(open_store(str(self.store)))
        self.checkouts = Checkouts(self.root, self.trees)
        # Where they can be, a job's own files are made of the base, which is used by that.
        self.checkouts.clones = False

    def base(self, name: str) -> str:
        """A version with one large file, other ones for each name."""
        content = {"large": name.encode() * LARGE, "d/small": name.encode()}
        tree = Tree().changed({path: file_entry(data) for path, data in content.items()})
        return self.trees.write_base(tree, content.__getitem__).tree.version

    def of(self, job: str, *, linked: bool = True) -> Checkout:
        """A job's checkout."""
        return self.checkouts.of(JobKey(batch="b", job=job), linked=linked)

    def used(self, job: str, version: str, at: int, *, linked: bool = True) -> Checkout:
        """A job's checkout at a version, which it used last at a second of long ago."""
        checkout = self.of(job, linked=linked)
        with checkout.at(version):
            pass
        locks = [checkout.kept.lock]
        if linked:
            locks.append(self.checkouts.kept_base(version).lock)
        for lock in locks:
            os.utime(lock, (at, at))
        return checkout

    def kept(self) -> list[str]:
        """What is there, by its path."""
        return sorted(str(one.kept.place.relative_to(self.root)) for one in kept_in(self.root))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """One with nothing."""
    return Host(tmp_path)


def test_the_oldest_goes_until_the_rest_is_within_the_bound(host: Host) -> None:
    """With its base, when no other links to it; nothing goes while there is room."""
    versions = [host.base(name) for name in "abc"]
    for number, version in enumerate(versions):
        host.used(f"j{number}", version, 1000 + number)
    host.used("own", versions[0], 2000, linked=False)
    total = told(host.root)[0]

    assert total > 4 * LARGE
    untouched = tidy(host.root, total)
    assert untouched is not None
    assert (untouched.deleted, untouched.left) == (0, total)
    tidied = tidy(host.root, total - LARGE)
    assert tidied is not None
    assert tidied.deleted == 2
    assert tidied.left == told(host.root)[0] == total - tidied.freed <= total - LARGE
    names = [version.removeprefix("sha256:") for version in versions]
    assert host.kept() == sorted(
        [f"bases/{names[1]}", f"bases/{names[2]}", "linked/b/j1", "linked/b/j2", "own/b/own"]
    )
    assert list((host.root / "aside").iterdir()) == []


def test_what_was_used_lately_stays_whatever_the_bound_is(host: Host) -> None:
    """The files of a job that waits for its model; and what it links to."""
    version = host.base("a")
    host.used("old", version, 1000)
    with host.of("new").at(version):
        pass

    tidied = tidy(host.root, 0)
    assert tidied is not None
    assert tidied.deleted == 1
    assert host.kept() == [f"bases/{version.removeprefix('sha256:')}", "linked/b/new"]


def test_what_links_to_a_base_counts_without_it(host: Host) -> None:
    """Ten checkouts of a base take its room once."""
    version = host.base("a")
    for number in range(10):
        host.used(f"j{number}", version, 1000)

    assert LARGE < told(host.root)[0] < 2 * LARGE
    assert disk_bytes(host.root) < 2 * LARGE


def test_what_somebody_has_stays(host: Host) -> None:
    """A checkout that is read, one that a command changes, a base, what a command needs."""
    version, other = host.base("a"), host.base("b")
    read, changed = host.used("read", version, 1), host.used("own", version, 1, linked=False)
    host.used("free", version, 1)
    with (
        read.at(version) as place,
        changed.at(version, alone=True),
        host.checkouts.base(other) as base,
        host.checkouts.scratch("command-") as running,
    ):
        os.utime(running, (1, 1))
        tidied = tidy(host.root, 0, rest=0)
        assert tidied is not None
        assert (place / "d" / "small").read_bytes() == b"a"
        assert (base / "large").stat().st_size == LARGE
        assert running.is_dir()
        assert "linked/b/free" not in host.kept()
    tidied = tidy(host.root, 0, rest=0)
    assert tidied is not None
    assert (host.kept(), tidied.left) == ([], 0)
    assert sorted(path.name for path in host.root.iterdir() if path.is_file()) == [
        "sizes.json",
        "tidy.lock",
    ]


def test_what_was_deleted_is_made_again(host: Host) -> None:
    """A base, and a checkout, from the archive."""
    version = host.base("a")
    checkout = host.used("j", version, 1)
    tidy(host.root, 0)
    assert not checkout.files.exists()
    with checkout.at(version) as place:
        assert (place / "large").read_bytes() == b"a" * LARGE
        assert (place / "large").stat().st_nlink == 2


def test_who_waits_for_what_is_put_aside_gets_another(host: Host) -> None:
    """A lock that was waited for is not taken for that of the directory that is new there."""
    version = host.base("a")
    checkout = host.of("j")
    with checkout.at(version):
        pass
    had = threading.Event()
    go = threading.Event()

    def read() -> bytes:
        with checkout.at(version, seconds=60) as place:
            return (place / "d" / "small").read_bytes()

    def hold() -> None:
        # As the one who tidies has it, for a moment.
        with checkout.kept.held(alone=True):
            had.set()
            go.wait(60)
            checkout.kept.place.rename(host.root / "elsewhere")

    with ThreadPoolExecutor(2) as pool:
        holding = pool.submit(hold)
        assert had.wait(60)
        with pytest.raises(Busy):
            checkout.forget()
        reading = pool.submit(read)
        go.set()
        assert reading.result(60) == b"a"
        holding.result(60)
    assert (checkout.files / "d" / "small").read_bytes() == b"a"


def test_jobs_at_work_while_others_tidy(host: Host) -> None:
    """Whatever is deleted beside them, each finds the files of its version."""
    versions = [host.base(name) for name in "ab"]
    done = threading.Event()

    def work(job: int) -> None:
        checkouts = Checkouts(host.root, host.trees)
        for number in range(30):
            which = (job + number) % 2
            checkout = checkouts.of(JobKey(batch="b", job=f"j{job}"), linked=job < 3)
            with checkout.at(versions[which], seconds=60) as place:
                assert (place / "d" / "small").read_bytes() == b"ab"[which : which + 1]
                assert (place / "large").stat().st_size == LARGE

    def clean() -> int:
        deleted = 0
        while not done.is_set():
            if (tidied := tidy(host.root, 0, rest=0)) is not None:
                deleted += tidied.deleted
        return deleted

    with ThreadPoolExecutor(6) as pool:
        cleaning = [pool.submit(clean) for _ in range(2)]
        try:
            for working in [pool.submit(work, job) for job in range(4)]:
                working.result()
        finally:
            done.set()
        assert sum(one.result() for one in cleaning) > 0


_TIDIES = """
import sys
from pathlib import Path
from runtime.workspace.checkouts.tidying import tidy
tidy(Path(sys.argv[1]), 0, rest=0)
"""


@pytest.mark.kill
def test_killed_while_it_deletes(host: Host) -> None:
    """Right after a directory was put aside, and while what was left there is deleted: nothing of
    it is used again, and all of it goes the next time.
    """
    version = host.base("a")
    checkout = host.used("j", version, 1)
    for point in ("tidy.aside", "tidy.deleting"):
        killed = subprocess.run(
            [sys.executable, "-c", _TIDIES, str(host.root)],
            cwd=_ROOT,
            env={**os.environ, "HOLDFAST_FAILPOINT": point},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        (left,) = (host.root / "aside").iterdir()
        # As far as the deletion had come.
        for path in left.rglob("large"):
            path.unlink()
        assert not checkout.kept.place.exists()
    with checkout.at(version) as place:
        assert (place / "large").stat().st_size == LARGE
    tidy(host.root, 1 << 40)
    assert list((host.root / "aside").iterdir()) == []


_RUNS = """
import os, sys
from pathlib import Path
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.workspace.checkouts.checkout import Checkouts
with Checkouts(Path(sys.argv[1]), Trees(MemoryStore())).scratch("command-") as top:
    (top / "upper").mkdir()
    os.utime(top, (1, 1))
    os.kill(os.getpid(), 9)
"""


@pytest.mark.kill
def test_what_a_killed_worker_had_is_deleted(host: Host) -> None:
    """The layers of its commands, when they have rested."""
    host.root.mkdir()
    subprocess.run([sys.executable, "-c", _RUNS, str(host.root)], cwd=_ROOT, check=False)
    (left,) = (host.root / "running").iterdir()
    assert (left / "upper").is_dir()

    tidy(host.root, 1 << 40)
    assert list((host.root / "running").iterdir()) == []


@pytest.mark.sandbox
def test_a_set_up_stays_while_a_command_has_it(host: Host) -> None:
    """And is made again when it was deleted."""
    version = host.base("a")
    setups = Setups(Versions(host.checkouts))
    writable = Writable(setup="echo made; cp large $HOLDFAST_SETUP/")

    def made(then: Callable[[Path], None]) -> bool:
        with setups.held(writable, version, threading.Event(), lambda line: None) as setup:
            assert setup is not None
            then(setup.directory)
            return setup.ran

    def tidies(directory: Path) -> None:
        tidy(host.root, 0, rest=0)
        assert (directory / "large").stat().st_size == LARGE

    assert made(tidies)
    assert not made(tidies)
    tidy(host.root, 0, rest=0)
    assert host.kept() == []
    assert made(tidies)


@pytest.mark.sandbox
def test_a_set_up_builds_on_the_disk_of_the_checkouts(host: Host) -> None:
    """Whose bytes are counted as its commands' are: no build fits in memory."""
    version = host.base("a")
    setups = Setups(Versions(host.checkouts))
    writable = Writable(setup="echo 1 > built; stat -f -c %b .")
    with setups.held(writable, version, threading.Event(), lambda line: None) as setup:
        assert setup is not None
        assert int(setup.log) == os.statvfs(host.root).f_blocks
    assert list((host.root / "running").iterdir()) == []


@pytest.mark.parametrize("setting", ["-1", "1e9", "\u0663", "9" * 5000])
def test_a_bound_is_a_number(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bytes, in plain digits, and of no more of them than a disk has."""
    monkeypatch.setenv(KEPT_BYTES, setting)
    with pytest.raises(InputError, match=f"{KEPT_BYTES}: expected a number of bytes"):
        kept_bytes()


@pytest.mark.slow
def test_a_bound_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """One line, exit code 2."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "doctor", "--json"],
        cwd=_ROOT,
        env={**os.environ, "HOLDFAST_HOME": str(tmp_path), KEPT_BYTES: "20G"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{KEPT_BYTES}: expected a number of bytes" in done.stdout
    assert done.returncode == 1
