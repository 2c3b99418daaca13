"""A directory store is atomic and safe between processes, and says clearly when it cannot write."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.archive.catalog import archive_id
from runtime.archive.stores import open_existing, open_store, open_to_read
from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import ArchiveError, NotFound, ObjectCorrupt, ObjectMissing

_WRITER = """
import sys
from pathlib import Path
from runtime.archive.stores.directory import DirectoryStore
store = DirectoryStore(Path(sys.argv[1]))
wins = sum(store.put_if_absent(f"race/{n:03d}", f"{sys.argv[2]} {n}".encode() * 1000) for n in range(40))
print(wins)
"""


def test_many_processes_share_a_directory(tmp_path: Path) -> None:
    """Four processes put the same keys: each key is won once, and holds one writer's bytes
    whole.
    """
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), str(n)], stdout=subprocess.PIPE
        )
        for n in range(4)
    ]
    wins = [int(writer.communicate()[0]) for writer in writers]
    assert sum(wins) == 40
    store = DirectoryStore(tmp_path)
    for n, key in enumerate(store.list("race/")):
        assert store.get(key) in {f"{writer} {n}".encode() * 1000 for writer in range(4)}


def test_a_directory_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    """A put into a directory that another process deleted since the last makes it again."""
    store, other = DirectoryStore(tmp_path), DirectoryStore(tmp_path)
    assert store.put_if_absent("job/turns/1", b"1")
    other.remove("job/turns/1")
    assert store.put_if_absent("job/turns/2", b"2")
    assert list(other.list("")) == ["job/turns/2"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_directory_that_is_replaced_in_a_put_gets_the_object(
    tmp_path: Path, unnamed: bool
) -> None:
    """A put that has its directory open while another process deletes it and makes it again writes
    into the new one.
    """
    other = DirectoryStore(tmp_path)

    class Late(DirectoryStore):
        def _write(self, folder: int, path: str, data: bytes) -> bool:
            self._unnamed = unnamed
            if list(other.list("")) == ["job/1"]:
                other.remove("job/1")
                other.put_if_absent("job/2", b"2")
            return super()._write(folder, path, data)

    other.put_if_absent("job/1", b"1")
    assert Late(tmp_path).put_if_absent("job/3", b"3")
    assert list(other.list("")) == ["job/2", "job/3"]


@pytest.mark.kill
@pytest.mark.parametrize("point", ["mid_put", "before_link", "before_sync"])
def test_a_kill_in_a_put_leaves_the_whole_object_or_none(tmp_path: Path, point: str) -> None:
    """After kill -9 in the middle of a put, the object is not there or complete, and can be put
    again.
    """
    code = f"""
from pathlib import Path
from runtime.archive.stores.directory import DirectoryStore
DirectoryStore(Path({str(tmp_path)!r})).put_if_absent("a/b", b"x" * 100000)
"""
    environment = {**os.environ, "HOLDFAST_FAILPOINT": f"store.directory.{point}"}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment).returncode == -signal.SIGKILL
    )
    store = DirectoryStore(tmp_path)
    there = list(store.list(""))
    assert there == (["a/b"] if point == "before_sync" else [])
    assert store.put_if_absent("a/b", b"x" * 100000) is (not there)
    assert store.get("a/b") == b"x" * 100000
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["b"]


def test_leftovers_of_named_files_are_no_objects(tmp_path: Path) -> None:
    """Where unnamed files do not exist, a killed process leaves a file that is never listed, and
    removed when it is old by the next that writes so.
    """
    folder = tmp_path / ".tmp"
    folder.mkdir()
    young, old, other = folder / "holdfast-young", folder / "holdfast-old", folder / "other"
    for leftover in (young, old, other):
        leftover.write_bytes(b"half")
        os.utime(leftover, (0, 0))
    os.utime(young)
    store = DirectoryStore(tmp_path)
    store._unnamed = False
    assert store.put_if_absent("a/b", b"x")
    assert not store.put_if_absent("a/b", b"y")
    assert list(store.list("")) == ["a/b"]
    assert sorted(folder.iterdir()) == [young, other]


@pytest.mark.parametrize("linked", [False, True])
def test_whoever_reads_removes_nothing(tmp_path: Path, linked: bool) -> None:
    """A directory that is no archive may have a ``.tmp`` with somebody's files; or a link there, in
    an archive that came from elsewhere.
    """
    folder = tmp_path / ("elsewhere" if linked else "made/.tmp")
    folder.mkdir(parents=True)
    files = [folder / "mine", folder / "holdfast-mine"]
    for file in files:
        file.write_bytes(b"of last year")
        os.utime(file, (0, 0))
    if linked:
        open_store(str(tmp_path / "made"))
        (tmp_path / "made/.tmp").symlink_to(folder)
        open_existing(str(tmp_path / "made"))
    else:
        with pytest.raises(NotFound):
            open_existing(str(tmp_path / "made"))
    assert all(file.exists() for file in files)


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "loop", "large"])
def test_what_is_no_file_of_ours_is_damage(tmp_path: Path, kind: str) -> None:
    """A pipe would wait for ever for who writes to it, and a device, or a file of holes, fill the
    memory; each is listed, and taken for a damaged object.
    """
    store = DirectoryStore(tmp_path)
    assert store.put_if_absent("a/b", b"x")
    place = tmp_path / "a/c"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "loop":
        place.symlink_to(place)
    elif kind == "large":
        place.touch()
        os.truncate(place, 6 << 30)
    else:
        os.mknod(place, stat.S_IFSOCK | 0o600)
    assert list(store.list("")) == ["a/b", "a/c"]
    assert not store.put_if_absent("a/c", b"y")
    with pytest.raises(ObjectCorrupt, match="a/c: "):
        store.get("a/c")


def test_a_full_disk_is_an_archive_error(tmp_path: Path) -> None:
    """A put that the disk has no room for fails with the reason, and leaves nothing (a file size
    limit stands for the disk).
    """
    code = f"""
import resource, signal
from pathlib import Path
from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import ArchiveError, NotFound, ObjectCorrupt, ObjectMissing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store = DirectoryStore(Path({str(tmp_path)!r}))
try:
    store.put_if_absent("a/b", b"x" * 2000)
except ArchiveError as error:
    print(error)
print(list(store.list("")), store.put_if_absent("a/b", b"small"))
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out == f"cannot write {tmp_path}/a/b: File too large\n[] True\n"


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/./b", ".tmp/x", "a\0b", "a/\ud800"])
def test_a_key_cannot_leave_the_directory(tmp_path: Path, key: str) -> None:
    """Keys that would name a file elsewhere, or none, are refused; what names one names nothing."""
    with pytest.raises(ArchiveError, match="is not an object key"):
        DirectoryStore(tmp_path).put_if_absent(key, b"x")
    with pytest.raises(ObjectMissing, match="is not an object key"):
        DirectoryStore(tmp_path).get(key)


def test_a_directory_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    """Opening a store below a file says which directory cannot be made."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match="cannot create the archive directory"):
        open_store(str(tmp_path / "file" / "archive"))


def test_a_file_url_is_a_directory(tmp_path: Path) -> None:
    """``file:///…`` and a path name the same store."""
    open_store(f"file://{tmp_path}/with%20space").put_if_absent("a", b"x")
    assert open_store(str(tmp_path / "with space")).get("a") == b"x"


def test_a_full_disk_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an archive is, whoever only reads it, or asks for its name, writes nothing; who is to
    write to it is told at once.
    """
    url = str(tmp_path / "archive")
    name = archive_id(open_to_read(url))

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("runtime.archive.stores.directory._write_all", full)
    assert archive_id(open_to_read(url)) == name
    with pytest.raises(ArchiveError, match="No space left on device"):
        open_store(url)
    with pytest.raises(ArchiveError, match="No space left on device"):
        open_to_read(str(tmp_path / "other"))


def test_directories_are_listed_however_deep_they_nest(tmp_path: Path) -> None:
    """Python's calls nest a thousand deep, and what somebody made here may nest deeper."""
    depth = sys.getrecursionlimit() + 100
    folders = [tmp_path.joinpath(*["d"] * (level + 1)) for level in range(depth)]
    for folder in folders:
        folder.mkdir()
    (folders[-1] / "f").touch()
    try:
        store = DirectoryStore(tmp_path)
        assert store.put_if_absent("d.e", b"") and store.put_if_absent("d/d0", b"")
        assert list(store.list("d")) == ["d.e", f"{'d/' * depth}f", "d/d0"]
    finally:
        # Not left to who removes temporary directories, by calls that nest as deep.
        for folder in reversed(folders):
            for name in ("f", "d0"):
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()


def test_a_name_that_is_no_text_is_listed_as_one(tmp_path: Path) -> None:
    """It is nothing of ours, and whoever tells of it, or digests it, needs a text."""
    store = DirectoryStore(tmp_path)
    store.put_if_absent("a/b", b"x")
    for name in (b"a/\xff", b"\xfe/c"):
        place = tmp_path / os.fsdecode(name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"y")
    assert list(store.list("")) == ["a/b", "a/\\xff", "\\xfe/c"]
    assert list(store.folders("")) == ["a", "\\xfe"]
    with pytest.raises(ObjectMissing):
        store.get("a/\\xff")
