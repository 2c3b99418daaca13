"""Trees in the archive: what a version costs, and that what is read is what was written."""

from __future__ import annotations

import itertools
import json
import random
import threading
from typing import Any

import pytest

from runtime.archive.container import Part, header, seal, unseal
from runtime.archive.forms.trees import TreeForm
from runtime.archive.frames import compress
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import KEYFRAME_EVERY, TooMuch, Trees, tree_key
from runtime.archive.verify import damage, verify_job
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing
from runtime.trees.entries import Entry, directory_entry, file_entry, link_entry
from runtime.trees.tree import Tree
from tests.git.jobs import hands_job

Files = dict[str, bytes]


class Counting(MemoryStore):
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, int] = {}
        self.read: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Count the bytes that are new."""
        if written := super().put_if_absent(key, data):
            self.written[key] = len(data)
        return written

    def get(self, key: str) -> bytes:
        """Count the reading."""
        self.read.append(key)
        return super().get(key)


def files(count: int) -> Files:
    """Files of some hundred bytes each, in directories."""
    made = random.Random(count)
    return {f"d{n % 7}/f{n}.py": made.randbytes(200) for n in range(count)}


def base_of(trees: Trees, content: Files) -> str:
    """A base with these files, and an empty directory, a link and an empty file."""
    entries: dict[str, Entry] = {path: file_entry(data) for path, data in content.items()}
    more = {"empty": directory_entry(0o700), "link": link_entry("d0"), "none": file_entry(b"")}
    tree = Tree().changed({**entries, **more})
    return trees.write_base(tree, content.__getitem__).tree.version


def changed(trees: Trees, version: str, content: dict[str, bytes | None]) -> str:
    """The version after a change of files."""
    entries = {path: data if data is None else file_entry(data) for path, data in content.items()}
    data = {entry.content: content[path] for path, entry in entries.items() if entry is not None}
    return trees.write_change(version, entries, data).tree.version  # type: ignore[arg-type]


def test_any_version_is_read_back_by_another_process() -> None:
    """Bases, changes, keyframes: the same tree, and each file's bytes."""
    store, content = Counting(), files(50)
    trees = Trees(store)
    version = base_of(trees, content)
    made = random.Random(1)
    known: list[tuple[str, Files]] = [(version, dict(content))]
    for turn in range(2 * KEYFRAME_EVERY + 3):
        step: dict[str, bytes | None] = {f"new/{turn % 5}\udcff": made.randbytes(30)}
        if turn % 3 == 0:
            step[next(iter(content))] = None
            content.pop(next(iter(content)))
        content.update({path: data for path, data in step.items() if data is not None})
        version = changed(trees, version, step)
        known.append((version, dict(content)))
    for version, expected in known:
        other = Trees(store)
        store.read.clear()
        tree = other.tree(version)
        assert tree == trees.tree(version)
        assert len(store.read) <= KEYFRAME_EVERY + 1
        found = {path: other.content(e) for path, e in tree.under() if e.is_file}
        assert found == {**expected, "none": b""}
        assert tree.get("empty") == directory_entry(0o700)


def test_a_change_is_one_write_and_costs_what_it_brings() -> None:
    """Whatever the tree's size; what the tree has had before is stored no second time."""
    sizes = []
    for count in (100, 3000):
        store, content = Counting(), files(count)
        trees = Trees(store)
        first = base_of(trees, content)
        store.written.clear()
        path = next(iter(content))
        second = changed(trees, first, {path: b"x = 1\n", "copy": content[path]})
        assert list(store.written) == [tree_key(second)]
        sizes.append(store.written[tree_key(second)])
        assert changed(trees, second, {path: b"x = 1\n"}) == second
        assert changed(trees, second, {path: content[path], "copy": None}) == first
        assert len(store.written) == 1
    assert sizes[1] < sizes[0] + 200
    assert max(sizes) < 1200


def test_equal_bases_are_one_and_similar_ones_share_packs() -> None:
    """A second job on the same files writes nothing; one file more costs its pack."""
    store, content = Counting(), files(2000)
    first = base_of(Trees(store), content)
    whole = sum(store.written.values())
    store.written.clear()
    assert base_of(Trees(store), content) == first
    assert store.written == {}
    base_of(Trees(store), {**content, "d3/one more.py": b"1"})
    assert len([key for key in store.written if "/packs/" in key]) <= 2
    assert sum(store.written.values()) < whole / 3


@pytest.mark.parametrize("fields", [{"sources": [[]]}, {"depth": "x"}, {"version": 5}])
def test_a_tree_with_another_header_is_damage(fields: dict[str, object]) -> None:
    """Its digest fits, as that of one which somebody made."""
    store, content = MemoryStore(), files(3)
    key = tree_key(base_of(Trees(store), content))
    archived = unseal(key, store.get(key))
    told = {name: value for name, value in archived.header.items() if name != "parts"}
    parts = archived.parts()
    store.replace(key, seal(key, header({**told, **fields}, parts), parts)[0])
    with pytest.raises(ObjectCorrupt, match="its header is none of a tree"):
        Trees(store).check(key)


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        *(("d0/tool", ["f", mode, 0, "", 0, 0, 0]) for mode in (0o4755, 0o2755, -1, "x", None)),
        *((path, ["f", 0o644, 0, "", 0, 0, 0]) for path in ("../out", "/out", "a//b", "", 5, "\0")),
        ("half \ud83d", ["f", 0o644, 0, "", 0, 0, 0]),
        ("x/" * 3000 + "x", ["f", 0o644, 0, "", 0, 0, 0]),
        ("deep", "[" * 100_000),
        *(("link", ["l", 0o777, 0, to, 0, 0, 0]) for to in ("a\0b", "half \ud83d", 5)),
        *(("late", ["f", 0o644, 0, "", 0, 0, depth]) for depth in (2**62, -1, 1.5, True)),
        *(("long", ["f", 0o644, size, "sha256:", 0, 0, 0]) for size in (-1, 10**30, "1")),
        ("before", ["f", 0o644, 1, "sha256:", 0, -1, 0]),
    ],
)
def test_an_entry_that_no_tree_has_is_damage(path: Any, entry: Any) -> None:
    """Its digests fit, as those of one which somebody made: an export made programs that run as
    the reader.
    """
    store = MemoryStore()
    key = tree_key("sha256:" + "0" * 64)
    line = entry if isinstance(entry, str) else json.dumps([path, *entry])
    data = line.encode()
    part = Part("changes", compress(data), len(data))
    form = {"kind": "tree", "version": "sha256:" + "0" * 64}
    told = header(TreeForm.model_validate(form).header(), (part,))
    store.put_if_absent(key, seal(key, told, (part,))[0])
    with pytest.raises(ObjectCorrupt, match=r"cannot be read|too deep"):
        Trees(store).version("sha256:" + "0" * 64)


def test_a_tree_that_leads_in_a_circle_is_damage() -> None:
    """By its parent, and by its base: it was gone round for ever."""
    for part in ("", "all"):
        store, content = MemoryStore(), files(3)
        base = base_of(Trees(store), content)
        version = changed(Trees(store), base, {"d0/new.py": b"1"})
        key = tree_key(version)
        archived = unseal(key, store.get(key))
        told_by = {name: value for name, value in archived.header.items() if name != "parts"}
        parts = archived.parts()
        if part:
            (own,) = (one for one in parts if one.name == "changes")
            parts = (*parts, Part(part, own.stored, own.size))
        fields = {**told_by, "parent": version, "base": version}
        store.replace(key, seal(key, header(fields, parts), parts)[0])
        with pytest.raises(ObjectCorrupt, match="leans on itself"):
            Trees(store).version(version)


def test_damage_is_told() -> None:
    """A lost object and one in another's place."""
    store, content = MemoryStore(), files(3)
    trees = Trees(store)
    first = base_of(trees, content)
    second = changed(trees, first, {"a": b"1"})
    third = changed(trees, second, {"a": b"2"})
    fresh = MemoryStore()
    for key in store.list(""):
        if key != tree_key(second):
            fresh.put_if_absent(key, store.get(key))
    with pytest.raises(ObjectMissing):
        Trees(fresh).tree(third)
    fresh.put_if_absent(tree_key(second), store.get(tree_key(third)))
    with pytest.raises(ObjectCorrupt):
        Trees(fresh).tree(third)


def test_a_tree_that_is_cut_anywhere_is_told_by_verify() -> None:
    """Also in the middle of what tells where its header ends."""
    store = MemoryStore()
    archive = hands_job(store, {"a": b"1"}, [("x", {"a": b"2"})])
    for key in [*store.list("_holdfast/")]:
        whole = store.get(key)
        for size in range(len(whole)):
            store.replace(key, whole[:size])
            assert key in {finding.key for finding in damage(verify_job(archive))}, size
        store.replace(key, whole)
    assert damage(verify_job(archive)) == []


def test_a_change_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bytes that it brings, not of those that are there."""
    monkeypatch.setattr("runtime.archive.trees.CHANGE_BYTES", 100)
    trees = Trees(MemoryStore())
    version = base_of(trees, files(3))
    with pytest.raises(TooMuch, match="brings 101 bytes"):
        changed(trees, version, {"a": bytes(101)})
    changed(trees, version, {"a": bytes(100)})


def test_a_change_reads_nothing_that_the_process_knows() -> None:
    """Also of a base it reads nothing a second time, however large that is."""
    store, content = Counting(), files(500)
    trees = Trees(store)
    version = changed(trees, base_of(trees, content), {"a": b"0"})
    store.read.clear()
    for turn in range(1, KEYFRAME_EVERY + 2):
        version = changed(trees, version, {"a": b"%d" % turn})
    assert len(store.read) <= KEYFRAME_EVERY + 1
    assert tree_key(base_of(trees, content)) not in store.read


class Meeting(MemoryStore):
    """A store whose first two packs wait for each other; with ``full``, it takes no pack more."""

    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self._full = full
        self._met = threading.Barrier(2)
        self._numbers = itertools.count()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Let the first two go together."""
        if "/packs/" in key and (number := next(self._numbers)) < 2:
            self._met.wait(timeout=60)
        elif "/packs/" in key and self._full:
            raise ArchiveError(f"no room for pack {number}")
        return super().put_if_absent(key, data)


def test_packs_of_a_base_are_written_side_by_side() -> None:
    """One pack need not be there before the next one is on its way."""
    store, content = Meeting(), files(500)
    base = base_of(Trees(store), content)
    read = Trees(store)
    assert {
        path: read.content(entry) for path, entry in read.tree(base).under() if entry.is_file
    } == {**content, "none": b""}


def test_a_base_is_not_there_without_all_of_its_packs() -> None:
    """A pack that cannot be written is told, and no tree names it."""
    store = Meeting(full=True)
    with pytest.raises(ArchiveError, match="no room for pack"):
        base_of(Trees(store), files(500))
    assert [key for key in store.list("") if "/trees/" in key] == []
