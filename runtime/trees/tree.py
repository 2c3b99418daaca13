"""``Tree``: an immutable tree of files, whose version is the digest of all that is in it.

A directory's digest covers the names, kinds, modes and digests of what is in it, as a Merkle tree
has it (R. Merkle, 1987), so equal trees have one version whatever led to them. A changed tree
shares all that did not change with the one before: a change costs by what it touches and by the
directories above that, never by the size of the tree. Modification times are no part of it: two
runs of one command differ in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from runtime.trees.entries import (
    Changes,
    Entry,
    Kind,
    directory_entry,
    is_directory,
)

_NO_NAMES = frozenset({"", ".", ".."})
_WORKED_OUT = ("digest", "count", "size")


@dataclass(frozen=True)
class _Node:
    """An entry, and of a directory what is in it. ``count`` and ``size`` are of all files in it."""

    entry: Entry
    children: dict[str, _Node] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        if self.entry.kind is not Kind.DIRECTORY:
            return self.entry.content
        lines = hashlib.sha256()
        for name in sorted(self.children):
            child = self.children[name]
            # A link's target may hold anything but a NUL, and so may a name.
            told = f"{child.entry.kind}{child.entry.mode:o}\0{name}\0{child.digest}\0"
            lines.update(told.encode("utf-8", "surrogateescape"))
        return "sha256:" + lines.hexdigest()

    def learn(self, other: _Node) -> None:
        """Take over what an equal node has worked out, and those in it."""
        if self is other or self.entry.kind is not Kind.DIRECTORY:
            return
        for name in _WORKED_OUT:
            if name in other.__dict__:
                self.__dict__[name] = other.__dict__[name]
        for name, child in self.children.items():
            child.learn(other.children[name])

    @cached_property
    def count(self) -> int:
        own = 1 if self.entry.is_file else 0
        return own + sum(child.count for child in self.children.values())

    @cached_property
    def size(self) -> int:
        return self.entry.size + sum(child.size for child in self.children.values())


@dataclass(frozen=True)
class Tree:
    """A tree of files. Paths are relative, with ``/`` between names; ``""`` is the root.

    Names are as Python's file functions give them: bytes that are no UTF-8 are lone surrogates.
    """

    _root: _Node = field(default_factory=lambda: _Node(directory_entry()))

    @property
    def version(self) -> str:
        """The digest of all that is in the tree, ``sha256:...``."""
        return self._root.digest

    @property
    def count(self) -> int:
        """How many files there are."""
        return self._root.count

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return self._root.size

    def get(self, path: str) -> Entry | None:
        """What is at a path; no link is followed."""
        node = self._node(path)
        return None if node is None else node.entry

    def names(self, path: str = "") -> list[str]:
        """The names in a directory, sorted; none for what is no directory."""
        node = self._node(path)
        return [] if node is None else sorted(node.children)

    def under(self, path: str = "") -> Iterator[tuple[str, Entry]]:
        """What is beneath a path, itself not included, a directory before what is in it."""
        node = self._node(path)
        if node is not None:
            yield from _walk(node, path)

    def changed(self, changes: Changes) -> Tree:
        """The tree after ``changes``. Directories that a path needs are made.

        Raises:
            ValueError: for a path that is empty, absolute, or has ``.`` or ``..`` in it.
        """
        return Tree(_put(self._root, _parts(changes), 0))

    def equal_to(self, other: Tree) -> Tree:
        """This tree, which is known to be equal to another: what that has worked out holds for
        this one too.
        """
        self._root.learn(other._root)
        return self

    def difference(self, other: Tree) -> dict[str, Entry | None]:
        """The changes that make ``other`` of this tree, by path in the order of trees.

        It costs by what differs, and by the directories above that.
        """
        return dict(_difference(self._root, other._root, ""))

    def _node(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for name in path.split("/") if path else ():
            node = None if node is None else node.children.get(name)
        return node


def _walk(node: _Node, path: str) -> Iterator[tuple[str, Entry]]:
    for name in sorted(node.children):
        child = node.children[name]
        place = f"{path}/{name}" if path else name
        yield place, child.entry
        if child.children:
            yield from _walk(child, place)


def names_of(path: str) -> list[str]:
    """The names that a path of a tree consists of: it is relative, without ``.`` or ``..``.

    Raises:
        ValueError: if no tree can have such a path.
    """
    names = path.split("/")
    if not _NO_NAMES.isdisjoint(names) or "\0" in path:
        raise ValueError(f"{path!r} is no path of a tree")
    return names


_Parts = list[tuple[list[str], Entry | None]]
"""Paths, as the names that they consist of, in the order of trees, and what is to be there."""


def _parts(changes: Changes) -> _Parts:
    """Raises ``ValueError`` for what is no path of a tree."""
    parts: _Parts = [(names_of(path), entry) for path, entry in changes.items()]
    # By names, and not as texts: there "a-b" would come between "a" and "a/b".
    parts.sort(key=itemgetter(0))
    return parts


def _put(node: _Node, parts: _Parts, at: int) -> _Node:
    """A directory, ``at`` names deep, with all changes in it made."""
    children = dict(node.children)
    same = True
    for name, group in groupby(parts, key=lambda part: part[0][at]):
        before = child = children.get(name)
        below = list(group)
        if len(below[0][0]) == at + 1:
            entry = below.pop(0)[1]
            # The entry of a directory that is there already is a new mode: what is in it stays.
            keeps = child is not None and is_directory(entry)
            inner = child.children if child is not None and keeps else {}
            child = None if entry is None else _Node(entry, inner)
        if below:
            child = _put_below(child, below, at + 1)
        # Nothing came of these changes: the node stays, with all that it has worked out.
        if child is before:
            continue
        same = False
        if child is None:
            del children[name]
        else:
            children[name] = child
    return node if same else _Node(node.entry, children)


def _put_below(node: _Node | None, parts: _Parts, at: int) -> _Node | None:
    """What was ``node``, with changes beneath it made. Only what comes needs a directory."""
    if node is None or node.entry.kind is not Kind.DIRECTORY:
        if all(entry is None for _, entry in parts):
            return node
        node = _Node(directory_entry())
    return _put(node, parts, at)


def _difference(old: _Node, new: _Node, path: str) -> Iterator[tuple[str, Entry | None]]:
    for name in sorted({**old.children, **new.children}):
        before, after = old.children.get(name), new.children.get(name)
        # One node in both trees, so nothing beneath it differs: this is what keeps the cost to what
        # does.
        if before is after:
            continue
        place = f"{path}/{name}" if path else name
        if after is None:
            yield place, None
            continue
        if before is None or before.entry != after.entry:
            yield place, after.entry
        if after.entry.kind is not Kind.DIRECTORY:
            continue
        if before is None or before.entry.kind is not Kind.DIRECTORY:
            yield from _walk(after, place)
        elif before.digest != after.digest:
            yield from _difference(before, after, place)
