"""Trees in the archive: bases whole, and each later version by what it changes.

::

    _holdfast/trees/VERSION     a version: what it changes, with the bytes that are new
    _holdfast/packs/DIGEST      bytes of some files of a base

A version is written in one object, whatever it changes, and costs by that alone. Equal bases are
one object for all jobs. The files of a base are packed by their paths (a pack ends where the digest
of a path says so), so that two bases which differ in a few files share the packs of the others.
Every ``KEYFRAME_EVERY``-th version lists all that changed since the base: to read one takes that
many objects at most.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from runtime.archive.caches import Recent
from runtime.archive.container import ArchivedObject, Part, header, seal
from runtime.archive.forms import Form
from runtime.archive.forms.trees import Pack, TreeForm
from runtime.archive.frames import compress
from runtime.archive.references import SHARED
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.trees.entries import PERMISSIONS, Changes, Entry, Kind, Spot
from runtime.trees.tree import Tree, names_of

KEYFRAME_EVERY = 16
PACK_BYTES = 4 * 1024 * 1024
PACK_FILES = 64
"""How many files a pack holds about."""
PACKS_AT_ONCE = 8
"""How many packs are held in memory, and written side by side."""

CHANGE_BYTES = 256 * 1024 * 1024
"""The most bytes that one version may bring."""

TREES, _PACKS = f"{SHARED}trees/", f"{SHARED}packs/"
_REMEMBERED, _OPEN = 256, 16
_KEPT_BYTES = 4 * PACK_BYTES
"""The most bytes of one object that are remembered."""
_MOST = 2**40
"""No number of bytes or of changes in a tree is larger."""


class TooMuch(ValueError):
    """A change brings more than ``CHANGE_BYTES``."""


@dataclass(frozen=True)
class Version:
    """A version as read: its tree, its place after its base, and where new bytes are.

    ``spots`` are of the contents that came after the base.
    """

    tree: Tree
    base: str
    depth: int
    spots: Mapping[str, Spot] = field(default_factory=dict)


class Trees:
    """The trees on a store. Safe between threads; remembers what was read.

    Methods raise ``ObjectMissing``, ``ObjectCorrupt`` and ``ArchiveError``.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._versions: Recent[Version] = Recent(_REMEMBERED)
        self._data: Recent[bytes] = Recent(_OPEN)
        self._spots: Recent[dict[str, Spot]] = Recent(8)
        self._digests: Recent[str] = Recent(4096)

    def __contains__(self, version: str) -> bool:
        """Whether the store has the version."""
        try:
            self.version(version)
        except ObjectMissing:
            return False
        return True

    def version(self, version: str) -> Version:
        """A version, with its tree."""
        known = self._versions.get(version)
        if known is None:
            try:
                known = self._read(version)
            except RecursionError as error:
                raise ObjectCorrupt(f"{tree_key(version)}: its paths are too deep") from error
            self._versions.put(version, known)
        return known

    def tree(self, version: str) -> Tree:
        """A version's tree."""
        return self.version(version).tree

    def content(self, entry: Entry) -> bytes:
        """A file's bytes.

        Raises:
            ObjectCorrupt: if they are not what the entry says.
        """
        if entry.size == 0:
            return b""
        if entry.spot is None:
            raise ValueError("the entry was not read from an archive")
        data = self._data_of(entry.spot.key)
        content = data[entry.spot.offset : entry.spot.offset + entry.size]
        if digest_bytes(content) != entry.content:
            raise ObjectCorrupt(f"{entry.spot.key}: the bytes of a file are not those of its entry")
        return content

    def check(self, key: str) -> None:
        """See that the version at a key is there as a whole: its tree, and the bytes that it
        brought.

        Raises:
            ArchiveError: what is wrong with it.
        """
        archived = self._object(key, TreeForm)
        self.version(str(archived.header["version"]))
        if tree_key(archived.header["version"]) != key:
            raise ObjectCorrupt(f"{key}: is version {archived.header['version']}")
        for entry in _entries(archived, "changes").values():
            if entry is not None and entry.is_file:
                self.content(entry)

    def write_base(self, tree: Tree, read: Callable[[str], bytes]) -> Version:
        """Archive a whole tree. ``read`` gives the bytes of the file at a path."""
        version = tree.version
        if self._stored(tree_key(version)):
            return self.version(version)
        if self._versions.get(version) is not None:
            # It was here, and was deleted with the last job that used it: so was what it leans on.
            self._forget()
        spots: dict[str, Spot] = {}
        packs = self._write_packs(tree, read, spots)
        form = TreeForm(version=version, sources=tuple(packs), uses=packs)
        numbers = {key: number for number, key in enumerate(packs, 1)}
        placed = ((path, _at(entry, spots)) for path, entry in tree.under())
        failpoint("tree.base.before_put")
        # The packs are written by now: the version is there only once all of its bytes are.
        self._put(form, [_lines("changes", placed, numbers)])
        return self.version(version)

    def write_change(self, parent: str, changes: Changes, data: Mapping[str, bytes]) -> Version:
        """Archive what ``changes`` make of the version ``parent``.

        ``data``: the bytes of what is new, by digest. Writes one object, none if nothing changes or
        the store has the tree already.

        Raises:
            TooMuch: if it brings too many bytes.
        """
        before = self.version(parent)
        tree = before.tree.changed(changes)
        known = self._versions.get(tree.version)
        # The store is asked too: what is remembered may have been deleted with the last job that
        # used it.
        if known is not None and self._stored(tree_key(tree.version)):
            return known
        key, depth = tree_key(tree.version), before.depth + 1
        spots, whole = self._brought(before, key, changes, data)
        placed = {
            path: entry and self._at(before, entry, spots, depth)
            for path, entry in before.tree.difference(tree).items()
        }
        # Once more, now with the places of the new bytes in its entries.
        tree = before.tree.changed(placed).equal_to(tree)
        form, written = self._listed(parent, before, tree, placed)
        if whole:
            written.append(Part("data", compress(whole), len(whole)))
        failpoint("tree.before_put")
        if not self._put(form, written):
            # It is there by another way, which may have begun with another base.
            return self.version(tree.version)
        failpoint("tree.after_put")
        if whole and len(whole) <= _KEPT_BYTES:
            self._data.put(key, whole)
        return self._know(Version(tree, before.base, depth, spots))

    def _listed(
        self, parent: str, before: Version, tree: Tree, placed: Changes
    ) -> tuple[TreeForm, list[Part]]:
        """The form of the version ``tree`` that comes after ``parent``, and its lists: what it
        changes, and in a keyframe all since the base.
        """
        key, depth = tree_key(tree.version), before.depth + 1
        parts = [placed]
        if depth % KEYFRAME_EVERY == 0:
            parts.append(self.tree(before.base).difference(tree))
        numbers = {source: number for number, source in enumerate(_elsewhere(parts, key), 1)}
        # A keyframe has all since the base: it does not lean on its parent.
        leans = {tree_key(before.base), *numbers} | (
            {tree_key(parent)} if len(parts) == 1 else set()
        )
        form = TreeForm(
            version=tree.version,
            base=before.base,
            parent=parent,
            depth=depth,
            sources=tuple(numbers),
            uses={name: self.digest(name) for name in sorted(leans)},
        )
        lists = [
            _lines(name, part.items(), {key: 0, **numbers})
            for name, part in zip(("changes", "all"), parts, strict=False)
        ]
        return form, lists

    def _know(self, version: Version) -> Version:
        self._versions.put(version.tree.version, version)
        return version

    def _brought(
        self, before: Version, key: str, changes: Changes, data: Mapping[str, bytes]
    ) -> tuple[dict[str, Spot], bytes]:
        """Where the content of each file lies once the object ``key`` is written, and the bytes
        that no object has yet.

        Raises:
            TooMuch: if these are too many.
        """
        spots, new, offset = dict(before.spots), list[bytes](), 0
        for entry in changes.values():
            if entry is None or not entry.is_file or self._known(before, entry, spots):
                continue
            spots[entry.content] = Spot(key, offset)
            new.append(data[entry.content])
            offset += entry.size
        if offset > CHANGE_BYTES:
            raise TooMuch(
                f"the change brings {offset:,} bytes of new files; at most {CHANGE_BYTES:,} may"
            )
        return spots, b"".join(new)

    def digest(self, key: str) -> str:
        """The digest of an object's bytes, by which others name it."""
        digest = self._digests.get(key)
        if digest is None:
            digest = digest_bytes(self._store.get(key))
            self._digests.put(key, digest)
        return digest

    def _stored(self, key: str) -> bool:
        """Whether the store has an object now, whatever is remembered of it."""
        # Listed and not read: a base may have megabytes.
        return key in self._store.list(key)

    def _forget(self) -> None:
        self._versions, self._data = Recent(_REMEMBERED), Recent(_OPEN)
        self._spots, self._digests = Recent(8), Recent(4096)

    def _known(self, before: Version, entry: Entry, spots: Mapping[str, Spot]) -> bool:
        here = entry.size == 0 or entry.content in spots
        return here or entry.content in self._base_spots(before.base)

    def _at(self, before: Version, entry: Entry, spots: Mapping[str, Spot], depth: int) -> Entry:
        known = spots if entry.content in spots else self._base_spots(before.base)
        return _at(entry, known, depth)

    def _base_spots(self, base: str) -> dict[str, Spot]:
        """Where the bytes of a base's files are, by their digests."""
        spots = self._spots.get(base)
        if spots is None:
            entries = (entry for _, entry in self.tree(base).under())
            spots = {entry.content: entry.spot for entry in entries if entry.spot is not None}
            self._spots.put(base, spots)
        return spots

    def _read(self, version: str, above: Iterable[str] = ()) -> Version:
        """A version from its object and those that it leans on; ``above`` are those that lean on
        it as their base.
        """
        chain: list[ArchivedObject] = []
        at, seen = version, set(above)
        while True:
            key = tree_key(at)
            # A header that somebody made may lead in a circle.
            if at in seen:
                raise ObjectCorrupt(f"{key}: leans on itself")
            seen.add(at)
            archived = self._object(key, TreeForm)
            chain.append(archived)
            if not archived.header.get("base") or archived.part("all"):
                break
            parent = archived.header.get("parent", "")
            if (known := self._versions.get(parent)) is not None:
                return self._grown(known, reversed(chain), version)
            at = parent
        last = chain[-1]
        base = last.header.get("base")
        if not base:
            tree = Tree().changed(_entries(last, "changes"))
            start = Version(tree, last.header["version"], 0)
            return self._grown(start, reversed(chain[:-1]), version)
        changes = _entries(last, "all")
        below = self._versions.get(base)
        if below is None:
            below = self._know(self._read(base, seen))
        start = Version(
            below.tree.changed(changes), base, last.header["depth"], _new_spots(changes)
        )
        return self._grown(start, reversed(chain[:-1]), version)

    def _grown(self, start: Version, steps: Iterable[ArchivedObject], version: str) -> Version:
        for step in steps:
            changes = _entries(step, "changes")
            spots = {**start.spots, **_new_spots(changes)}
            start = Version(start.tree.changed(changes), start.base, step.header["depth"], spots)
        # The tree's own digest tells whether each step on the way was the right one.
        if start.tree.version != version:
            raise ObjectCorrupt(f"{tree_key(version)}: what it lists is another version")
        return start

    def _object(self, key: str, form: type[Form]) -> ArchivedObject:
        return form.opened(key, self._store.get(key))

    def _data_of(self, key: str) -> bytes:
        data = self._data.get(key)
        if data is None:
            form = Pack if key.startswith(_PACKS) else TreeForm
            data = self._object(key, form).frame("data")
            if len(data) <= _KEPT_BYTES:
                self._data.put(key, data)
        return data

    def _write_packs(
        self, tree: Tree, read: Callable[[str], bytes], spots: dict[str, Spot]
    ) -> dict[str, str]:
        """The packs of a base, written, and their digests by their keys, in their order; what lies
        where is put into ``spots``.

        A pack waits for a disk or a network, and a base may have thousands: some go at once.
        """
        packs: dict[str, str] = {}
        going: deque[tuple[str, Future[str]]] = deque()
        with ThreadPoolExecutor(PACKS_AT_ONCE, thread_name_prefix="holdfast-packs") as pool:
            for pack in _packed(tree):
                data = b"".join(read(path) for path, _ in pack)
                key = _PACKS + digest_bytes(data).removeprefix("sha256:")
                offset = 0
                for _, entry in pack:
                    spots[entry.content] = Spot(key, offset)
                    offset += entry.size
                going.append((key, pool.submit(self._write_pack, key, data)))
                if len(going) == PACKS_AT_ONCE:
                    key, written = going.popleft()
                    packs[key] = written.result()
            packs.update((key, written.result()) for key, written in going)
        return packs

    def _write_pack(self, key: str, data: bytes) -> str:
        try:
            # Read and not remembered: it may have been deleted with the last job that used it, and
            # written again by a process that compresses in another way.
            written = self._store.get(key)
        except ObjectMissing:
            parts = (Part("data", compress(data), len(data)),)
            written, _ = seal(key, header(Pack().header(), parts), parts)
            if not self._store.put_if_absent(key, written):
                written = self._store.get(key)
        digest = digest_bytes(written)
        self._digests.put(key, digest)
        return digest

    def _put(self, form: TreeForm, parts: list[Part]) -> bool:
        key = tree_key(form.version)
        sealed, _ = seal(key, header(form.header(), tuple(parts)), tuple(parts))
        return self._store.put_if_absent(key, sealed)


def tree_key(version: str) -> str:
    """Where the store has a version."""
    return TREES + version.removeprefix("sha256:")


def _packed(tree: Tree) -> Iterator[list[tuple[str, Entry]]]:
    """The files of a tree in packs; equal files come once."""
    pack: list[tuple[str, Entry]] = []
    size, taken = 0, set[str]()
    for path, entry in tree.under():
        if not entry.is_file or entry.size == 0 or entry.content in taken:
            continue
        taken.add(entry.content)
        pack.append((path, entry))
        size += entry.size
        ends = int(digest_bytes(path.encode("utf-8", "surrogateescape"))[-4:], 16) % PACK_FILES == 0
        if ends or size >= PACK_BYTES:
            yield pack
            pack, size = [], 0
    if pack:
        yield pack


def _at(entry: Entry, spots: Mapping[str, Spot], depth: int | None = None) -> Entry:
    spot = spots[entry.content] if entry.is_file and entry.size else entry.spot
    depth = entry.depth if depth is None else depth
    return Entry(entry.kind, entry.mode, entry.size, entry.content, spot, depth)


def _new_spots(changes: Changes) -> dict[str, Spot]:
    return {
        entry.content: entry.spot
        for entry in changes.values()
        if entry is not None and entry.spot is not None
    }


def _elsewhere(parts: Iterable[Mapping[str, Entry | None]], key: str) -> list[str]:
    """The other objects that have content of these entries, in the order of their keys."""
    return sorted(
        {
            entry.spot.key
            for part in parts
            for entry in part.values()
            if entry is not None and entry.spot is not None and entry.spot.key != key
        }
    )


def _lines(
    name: str, entries: Iterable[tuple[str, Entry | None]], numbers: Mapping[str, int]
) -> Part:
    """A part with an entry a line."""
    text = "\n".join(json.dumps(_line(path, entry, numbers)) for path, entry in entries).encode()
    return Part(name, compress(text), len(text))


def _line(path: str, entry: Entry | None, numbers: Mapping[str, int]) -> list[Any]:
    # JSON's escapes carry the lone surrogates of names that are no UTF-8.
    if entry is None:
        return [path]
    told: list[Any] = [path, entry.kind.value, entry.mode, entry.size, entry.content]
    spot = entry.spot
    return [
        *told,
        *((numbers[spot.key], spot.offset) if spot is not None else (0, 0)),
        entry.depth,
    ]


def _entries(archived: ArchivedObject, part: str) -> dict[str, Entry | None]:
    """The entries of a part.

    Raises:
        ObjectCorrupt: if it is none.
    """
    names = (archived.key, *archived.header.get("sources", ()))
    entries: dict[str, Entry | None] = {}
    try:
        for line in archived.frame(part).splitlines():
            path, *rest = json.loads(line)
            _check_path(path)
            if not rest:
                entries[path] = None
                continue
            kind, mode, size, content, source, offset, depth = rest
            _check_entry(mode, size, content, offset, depth)
            spot = Spot(names[source], offset) if kind == Kind.FILE.value and size else None
            entries[path] = Entry(Kind(kind), mode, size, content, spot, depth)
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        raise ObjectCorrupt(f"{archived.key}: part {part} cannot be read: {error}") from error
    return entries


def _check_path(path: Any) -> None:
    """Raises ``ValueError`` for what no tree has as a path."""
    if not isinstance(path, str):
        raise ValueError(f"{path!r} is no path of a tree")
    names_of(path)
    _check_name(path)


def _check_entry(mode: Any, size: Any, content: Any, offset: Any, depth: Any) -> None:
    """Raises ``ValueError`` for what no entry has: whoever lays a tree out does as it says."""
    # Of a forged one: a program that runs as its owner would be the reader's.
    if type(mode) is not int or not 0 <= mode <= PERMISSIONS:
        raise ValueError(f"{mode!r} is no mode of a tree")
    if any(type(one) is not int or not 0 <= one < _MOST for one in (size, offset, depth)):
        raise ValueError("a size, an offset or a number of changes is none")
    if not isinstance(content, str) or "\0" in content:
        raise ValueError(f"{content!r} is neither a digest nor where a link leads")
    _check_name(content)


def _check_name(text: str) -> None:
    """Raises ``ValueError`` for what no file system has: half a character that is no byte."""
    text.encode("utf-8", "surrogateescape")
