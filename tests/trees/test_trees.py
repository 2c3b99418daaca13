"""Trees as values: what a change makes of one, and what two differ in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.trees.entries import Entry, Kind, directory_entry, file_entry, link_entry
from runtime.trees.tree import Tree

NAMES = st.sampled_from(["a", "b", "a-b", "ü", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
ENTRIES = st.one_of(
    st.binary(max_size=3).map(file_entry),
    NAMES.map(link_entry),
    st.sampled_from([0o755, 0o700]).map(directory_entry),
)
CHANGES = st.dictionaries(PATHS, st.none() | ENTRIES, max_size=6)


@given(st.lists(CHANGES, max_size=4), st.lists(CHANGES, max_size=4))
def test_a_difference_makes_one_tree_of_the_other(left: list[dict], right: list[dict]) -> None:
    """Whatever two trees went through; equal contents have one version, others have two."""
    one, other = Tree(), Tree()
    for changes in left:
        one = one.changed(changes)
    for changes in right:
        other = other.changed(changes)
    difference = one.difference(other)
    made = one.changed(difference)
    assert list(made.under()) == list(other.under())
    assert made.version == other.version
    assert (one.version == other.version) == (list(one.under()) == list(other.under()))
    assert bool(difference) == (one.version != other.version)
    rebuilt = Tree().changed(dict(other.under()))
    assert (rebuilt.version, rebuilt.count) == (other.version, other.count)


@given(CHANGES, CHANGES)
def test_changes_at_once_are_those_one_by_one(before: dict, changes: dict) -> None:
    """In the order of trees, whatever was there; what an equal tree is told, it knows."""
    tree = Tree().changed(before)
    one_by_one = tree
    for path in sorted(changes, key=lambda path: path.split("/")):
        one_by_one = one_by_one.changed({path: changes[path]})
    at_once = tree.changed(changes)
    assert list(at_once.under()) == list(one_by_one.under())
    made = tree.changed(tree.difference(at_once)).equal_to(at_once)
    assert (made.version, made.count, made.size) == (
        one_by_one.version,
        one_by_one.count,
        one_by_one.size,
    )
    # Directories that are made from it have digests of their own.
    more = {"a/new": file_entry(b"new")}
    assert made.changed(more).version == one_by_one.changed(more).version


def test_a_change_shares_what_it_does_not_touch() -> None:
    """A difference looks at no directory that both trees share."""
    tree = Tree().changed(
        {f"d{n}/f{m}": file_entry(b"%d" % m) for n in range(30) for m in range(9)}
    )
    after = tree.changed({"d3/f4": file_entry(b"new"), "d9": None})
    assert after.difference(tree).keys() == {"d3/f4", "d9", *(f"d9/f{m}" for m in range(9))}
    assert tree.difference(after) == {"d3/f4": file_entry(b"new"), "d9": None}
    shared = [name for name in tree.names() if tree._node(name) is after._node(name)]
    assert shared == sorted({f"d{n}" for n in range(30)} - {"d3", "d9"})
    assert (after.count, after.size) == (261, 261 - 1 + 3)


def test_kinds_take_each_others_places() -> None:
    """A file in a directory's place hides all that was in it; a directory keeps what is in it."""
    tree = Tree().changed({"a/b/c": file_entry(b"1"), "a/d": link_entry("b")})
    assert list(tree.changed({"a": file_entry(b"2")}).under()) == [("a", file_entry(b"2"))]
    moded = tree.changed({"a": directory_entry(0o700)})
    assert moded.get("a") == Entry(Kind.DIRECTORY, 0o700)
    assert moded.names("a") == ["b", "d"]
    assert tree.changed({"a/d/e": file_entry(b"3")}).get("a/d") == directory_entry()
    assert tree.changed({"nothing/here": None}).version == tree.version


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "./a", "a/../b", "a\0"])
def test_a_path_leads_nowhere_else(path: str) -> None:
    """Paths of trees are plain."""
    with pytest.raises(ValueError, match="is no path of a tree"):
        Tree().changed({path: file_entry(b"")})
