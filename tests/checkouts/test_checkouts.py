"""Checkouts: directories that are at a version, whatever they went through."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from runtime.archive.stores import MemoryStore
from runtime.archive.trees import TooMuch, Trees
from runtime.base.kept import Busy
from runtime.base.values import JobKey
from runtime.sandbox.layers import remove_tree
from runtime.trees.entries import Entry, directory_entry, file_entry, link_entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from runtime.workspace.checkouts.excluded import excluded
from runtime.workspace.checkouts.laying import EPOCH
from runtime.workspace.checkouts.taking import (
    Digests,
    Taken,
    check_file,
    chunks_of,
    differing,
    left_in,
    take,
)

JOB = JobKey(batch="b/1", job="..")
NOTHING = excluded(())


def kept(path: Path) -> Taken:
    """A directory as a tree."""
    return take(path, NOTHING, Digests())


class Made:
    """A store with versions, made from each other."""

    def __init__(self, root: Path) -> None:
        self.trees = Trees(MemoryStore())
        self.checkouts = Checkouts(root, self.trees)
        self.versions = [self.trees.write_base(Tree(), dict[str, bytes]().__getitem__).tree.version]

    def base(self, content: dict[str, bytes], others: dict[str, Entry]) -> str:
        """A base."""
        entries = {path: file_entry(data) for path, data in content.items()}
        tree = Tree().changed({**entries, **others})
        return self.trees.write_base(tree, content.__getitem__).tree.version

    def change(self, version: str, changes: dict[str, bytes | Entry | None]) -> str:
        """A version after another."""
        data, entries = {}, dict[str, Entry | None]()
        for path, what in changes.items():
            entries[path] = file_entry(what) if isinstance(what, bytes) else what
            if isinstance(what, bytes):
                data[file_entry(what).content] = what
        return self.trees.write_change(version, entries, data).tree.version


NAMES = st.sampled_from(["a", "b", "c\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
THINGS = st.one_of(
    st.none(),
    st.binary(max_size=3),
    st.sampled_from([link_entry("a"), link_entry("/etc/passwd"), link_entry("../../..")]),
    st.sampled_from([0o755, 0o700, 0o500, 0o000]).map(directory_entry),
    st.sampled_from([0o600, 0o755, 0o000]).map(lambda mode: file_entry(b"", mode)),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(PATHS, THINGS, max_size=4), min_size=1, max_size=5),
    st.lists(st.integers(0, 5), max_size=6),
    st.booleans(),
)
def test_a_checkout_comes_to_any_version_from_any_other(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[dict[str, bytes | Entry | None]],
    way: list[int],
    linked: bool,
) -> None:
    """Files, links out, directories that nobody may enter: what is on disk is the version."""
    root = tmp_path_factory.mktemp("co")
    made = Made(root)
    versions = list(made.versions)
    for step in steps:
        versions.append(made.change(versions[-1], step))
    checkout = made.checkouts.of(JOB, linked=linked)
    for number in [*way, len(versions) - 1]:
        version = versions[number % len(versions)]
        with checkout.at(version) as place:
            # What has no bits that let its owner in, root alone can read from outside.
            assert os.geteuid() != 0 or kept(place).tree.version == version
    assert checkout.files.parent == root / ("linked" if linked else "own") / "b%2F1" / "%2E%2E"
    made.checkouts.forget(JOB)
    assert not checkout.files.parent.exists()
    remove_tree(root)


def test_times_are_made_up_and_the_same_everywhere(tmp_path: Path) -> None:
    """The base's files are of one time, later ones a second newer for each change."""
    made = Made(tmp_path / "one")
    base = made.base({"a": b"1", "d/b": b"2"}, {})
    last = made.change(made.change(base, {"d/b": b"3"}), {"c": b"4"})
    for root in (tmp_path / "one", tmp_path / "two"):
        checkout = Checkouts(root, made.trees).of(JOB, linked=True)
        with checkout.at(last) as place:
            times = {name: (place / name).stat().st_mtime for name in ("a", "d/b", "c", "d")}
        assert times == {"a": EPOCH, "d/b": EPOCH + 1, "c": EPOCH + 2, "d": EPOCH}


def test_checkouts_of_one_base_share_its_files(tmp_path: Path) -> None:
    """They are links to one file until a version replaces it; where commands write, they are
    not.
    """
    made = Made(tmp_path)
    base = made.base({"a": b"1", "b": b"2"}, {})
    other = made.change(base, {"b": b"3"})
    places = []
    for job, linked, version in (("x", True, base), ("y", True, other), ("z", False, base)):
        checkout = made.checkouts.of(JobKey(batch="b", job=job), linked=linked)
        with checkout.at(version) as place:
            places.append((place / "a").stat().st_ino)
            assert (place / "b").read_bytes() == (b"3" if job == "y" else b"2")
    assert places[0] == places[1] != places[2]


@pytest.mark.parametrize("clones", [None, True], ids=["found", "taken for granted"])
def test_files_that_commands_write_have_the_bytes_of_the_base(
    tmp_path: Path, clones: bool | None
) -> None:
    """Where the file system can, none is written from the archive; where it cannot, each is, also
    if it refuses in the midst. What is written to them is not written to the base.
    """
    made = Made(tmp_path)
    able = made.checkouts.clones
    if clones is not None:
        made.checkouts.clones = clones
    base = made.base(
        {"a": b"1" * 9000, "d/b": b"2", "empty": b""}, {"run": file_entry(b"2", 0o755)}
    )
    other = made.change(base, {"c": b"3"})
    written: list[str] = []
    with made.checkouts.base(base) as kept:
        write = made.checkouts.write
        made.checkouts.write = lambda place, entry: (  # type: ignore[method-assign]
            written.append(Path(place).name),
            write(place, entry),
        )[1]
        with made.checkouts.of(JOB, linked=False).at(other, alone=True) as place:
            assert sorted(written) == (["c"] if able else ["a", "b", "c", "empty", "run"])
            assert {path: (place / path).stat().st_mtime for path in ("a", "run", "c")} == {
                "a": EPOCH,
                "run": EPOCH,
                "c": EPOCH + 1,
            }
            assert stat.S_IMODE((place / "run").stat().st_mode) == 0o755
            (place / "a").write_bytes(b"4")
            with (place / "d/b").open("ab") as file:
                file.write(b"5")
        assert (kept / "a").read_bytes() == b"1" * 9000
        assert (kept / "d/b").read_bytes() == b"2"


def test_a_base_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used after a power cut, too; one that is there is not written again."""
    made = Made(tmp_path)
    version = made.base({"a": b"1"}, {})
    place = made.checkouts.kept_base(version).place
    synced: list[tuple[list[bytes], bool]] = []

    def sync() -> None:
        synced.append(([path.read_bytes() for path in tmp_path.rglob("files/a")], place.exists()))

    monkeypatch.setattr(os, "sync", sync)
    for _ in range(2):
        with made.checkouts.base(version) as files:
            assert (files / "a").read_bytes() == b"1"
    assert synced == [([b"1"], False)]


def test_what_was_moved_by_a_process_that_died_is_made_anew(tmp_path: Path) -> None:
    """A checkout that is at no version, or was made before the machine went down."""
    made = Made(tmp_path)
    base = made.base({"a": b"1"}, {})
    checkout = made.checkouts.of(JOB, linked=False)
    with checkout.at(base, alone=True) as place:
        (place / "a").write_bytes(b"half")
    with checkout.at(base) as place:
        assert (place / "a").read_bytes() == b"1"
    (place / "a").unlink()
    marker = place.parent / "version"
    marker.write_text(f"{base} another-boot\n")
    with checkout.at(base) as place:
        assert (place / "a").read_bytes() == b"1"


def test_nobody_moves_what_another_reads(tmp_path: Path) -> None:
    """Readers of one version share it; another version waits, and says so when it cannot."""
    made = Made(tmp_path)
    base = made.base({"a": b"1"}, {})
    other = made.change(base, {"a": b"2"})
    checkout, same = (made.checkouts.of(JOB, linked=True) for _ in range(2))
    with checkout.at(base):
        pass
    with checkout.at(base) as place, same.at(base):
        for what in ({}, {"alone": True}):
            with pytest.raises(Busy), same.at(other if not what else base, **what):
                pass
        assert (place / "a").read_bytes() == b"1"
        came = threading.Event()

        def late() -> None:
            with same.at(other, seconds=60):
                came.set()

        waiting = threading.Thread(target=late)
        waiting.start()
        assert not came.is_set()
    waiting.join()
    assert came.is_set()


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    """Links stay links, patterns are left out, and what no version can hold is named."""
    for name in ("d/e", "node_modules/x", "d/node_modules", "empty", ".git/objects"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("d/a.py", "d/a.log", "node_modules/x/y", ".git/HEAD", "d/node_modules/z"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d/a.py").chmod(0o4755)
    (tmp_path / "out").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    taken = take(tmp_path, excluded(("node_modules/", "*.log")), Digests())
    assert {path: entry.kind.value for path, entry in taken.tree.under()} == {
        **dict.fromkeys([".git", ".git/objects", "d", "d/e", "empty"], "d"),
        **dict.fromkeys([".git/HEAD", "d/a.py"], "f"),
        "out": "l",
    }
    entry = taken.tree.get("d/a.py")
    assert entry is not None
    assert entry.mode == stat.S_IMODE(0o755)
    assert taken.dropped == ("pipe is a named pipe, which a version cannot hold: it was dropped",)


def test_what_a_command_changed_is_found(tmp_path: Path) -> None:
    """By looking at all, where there is no layer that has it."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/b").write_text("2")
    digests = Digests()
    before = take(tmp_path, NOTHING, digests).tree
    (tmp_path / "a").write_text("3")
    (tmp_path / "d/b").unlink()
    (tmp_path / "d/c").write_text("4")
    found = differing(tmp_path, before, NOTHING, digests)
    assert found.changes == {"a": file_entry(b"3"), "d/b": None, "d/c": file_entry(b"4")}
    assert sorted(found.data.values()) == [b"3", b"4"]
    assert kept(tmp_path).tree == before.changed(found.changes)


def test_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """However long a file says that it is: by looking at all, and in a layer."""
    (tmp_path / "a").write_text("1")
    before = kept(tmp_path).tree
    for name in ("a", "new"):
        with (tmp_path / name).open("ab") as file:
            file.truncate(1 << 40)
        with pytest.raises(TooMuch):
            differing(tmp_path, before, NOTHING, Digests())
        with pytest.raises(TooMuch):
            left_in(tmp_path, before, NOTHING)
        (tmp_path / name).unlink()


def test_no_job_begins_with_a_file_that_is_too_large(tmp_path: Path) -> None:
    """It is named, on one line, and not read."""
    with (tmp_path / "large\n").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        TooMuch, match=r"^large\\n has 1,099,511,627,776 bytes, and no file .*exclude"
    ):
        take(tmp_path, NOTHING, Digests(), check_file)


def test_a_file_is_read_as_long_as_it_was(tmp_path: Path) -> None:
    """It may grow for as long as it is read: whoever writes to it could keep a worker at it."""
    log = tmp_path / "log"
    log.write_bytes(bytes(3 << 20))
    with log.open("rb") as file, log.open("ab") as more:
        read = 0
        for chunk in chunks_of(file.fileno(), os.fstat(file.fileno())):
            read += len(chunk)
            more.write(chunk)
            more.flush()
    assert read == 3 << 20


def left_by_a_command(made: Made, upper: Path, base: str) -> str:
    """A layer over a base, as a command leaves one, and the version that it makes."""
    (upper / "new" / "deep").mkdir(parents=True)
    (upper / "new" / "deep" / "c").write_bytes(b"see")
    (upper / "b").write_bytes(b"changed")
    (upper / "b").chmod(0o4700)
    (upper / "one").write_bytes(b"two names")
    os.link(upper / "one", upper / "two")
    return made.change(
        base,
        {
            "b": b"changed",
            "b2": None,
            "new": directory_entry(),
            "new/deep": directory_entry(),
            "new/deep/c": b"see",
            "one": b"two names",
            "two": b"two names",
        },
    )


def test_what_a_command_left_is_moved_into_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes to the same as from the archive, of which nothing is read but for files with two
    names: those a version has not.
    """
    made, other = Made(tmp_path / "one"), tmp_path / "upper"
    base = made.base({"a": b"a", "b": b"b", "b2": b"b2"}, {})
    after = left_by_a_command(made, other, base)
    checkout = made.checkouts.of(JOB, linked=True)
    with checkout.at(base):
        pass
    read: list[str] = []
    content = made.trees.content
    monkeypatch.setattr(
        made.trees, "content", lambda entry: (read.append(entry.content), content(entry))[1]
    )
    checkout.take_over(other, base, after)
    assert read == [file_entry(b"two names").content] * 2
    assert sorted(path.name for path in other.rglob("*")) == ["deep", "new", "one", "two"]
    fresh = Checkouts(tmp_path / "fresh", made.trees).of(JOB, linked=True)
    with checkout.at(after) as moved, fresh.at(after) as laid:
        assert kept(moved).tree.version == after
        for path in ("b", "new", "new/deep/c", "one", "two"):
            was, now = (laid / path).stat(), (moved / path).stat()
            assert (now.st_mode, now.st_mtime, now.st_nlink) == (
                was.st_mode,
                was.st_mtime,
                was.st_nlink,
            ), path


def test_what_a_command_left_stays_where_somebody_reads_the_files(tmp_path: Path) -> None:
    """The reader keeps its version; whoever wants the next one gets it from the archive."""
    made, other = Made(tmp_path / "one"), tmp_path / "upper"
    base = made.base({"a": b"a", "b": b"b", "b2": b"b2"}, {})
    after = left_by_a_command(made, other, base)
    checkout = made.checkouts.of(JOB, linked=True)
    with checkout.at(base) as files:
        made.checkouts.of(JOB, linked=True).take_over(other, base, after)
        assert (files / "b").read_bytes() == b"b"
    # At another version than the command began with, neither.
    with checkout.at(after):
        checkout.take_over(other, base, after)
    assert (other / "b").exists()
    with checkout.at(after) as files:
        assert kept(files).tree.version == after


_NAMES = st.sampled_from(["a", "b", "c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_PATTERNS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "!"]),
    st.sampled_from(["", "/", "**/"]),
    _PATHS,
    st.sampled_from(["/", "/", "/", "", "/**"]),
)


@given(patterns=st.lists(_PATTERNS, min_size=1, max_size=3), path=_PATHS)
def test_what_is_left_out_is_what_the_patterns_say(patterns: list[str], path: str) -> None:
    """A path is, or a directory above it, whatever was asked before."""
    spec, names = GitIgnoreSpec.from_lines(patterns), path.split("/")
    above = any(spec.match_file("/".join(names[:n]) + "/") for n in range(1, len(names)))
    leave = excluded(tuple(patterns))

    assert leave.above(path) == (above or spec.match_file(path))
    assert leave.above(path, directory=True) == (above or spec.match_file(f"{path}/"))
    if not above:
        assert leave.has(path) == spec.match_file(path)
