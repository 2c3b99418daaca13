"""Trees as git's objects, in a repository that is thrown away or given away."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pygit2
from pygit2.enums import ConfigLevel, ObjectType

from runtime.trees.entries import Entry, Kind
from runtime.trees.tree import Tree

# Git's trees have no other modes, but for that of a submodule.
_TREE, _LINK, _FILE, _EXECUTABLE = 0o040000, 0o120000, 0o100644, 0o100755
OWN_NAME = ".git"
"""What no git tree can hold: the place of a repository itself."""

# Names that lead there on another file system, as git knows them (path.c, utf8.c): NTFS has short
# names, streams, and no dots or spaces at an end, HFS+ passes over characters that nobody sees.
_OWN_ON_NTFS = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
# Of ".gitmodules" the short names may be made of a digest, of which git knows the beginning.
_MODULES_ON_NTFS = re.compile(
    r"(?:\.gitmodules|gitmod~[1-4]|"
    + "|".join(rf"{'gi7eba'[:kept]}~[1-9]\d{{{6 - kept}}}" for kept in range(7))
    + r")[ .]*(?::.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PASSED_OVER = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def is_own(name: str) -> bool:
    """Whether git takes a name for ``OWN_NAME``, on whatever file system: then it refuses the whole
    tree or patch that has it.
    """
    return _OWN_ON_NTFS.fullmatch(_PASSED_OVER.sub("", name)) is not None


LINK_REFUSED = "git takes no link that is called .gitmodules"
"""Why a link is left out."""


def is_refused(path: str, entry: Entry | None) -> bool:
    """Whether git refuses the whole tree or patch that has this ``entry`` by the last name of its
    path: also for a link that is called ``.gitmodules``, which it would follow.
    """
    name = path.rpartition("/")[2]
    if is_own(name):
        return True
    is_link = entry is not None and entry.kind is Kind.LINK
    return is_link and _MODULES_ON_NTFS.fullmatch(_PASSED_OVER.sub("", name)) is not None


class GitObjects:
    """Writes files and trees into a repository. ``read`` gives a file's bytes."""

    def __init__(self, repository: pygit2.Repository, read: Callable[[Entry], bytes]) -> None:
        self.repository = repository
        self._read = read
        self._blobs: dict[str, pygit2.Oid] = {}

    def tree(self, tree: Tree, *, whole: bool = True) -> pygit2.Oid:
        """A tree's object. Directories without files are left out, as git has none.

        Without ``whole``, so is what git takes from nobody (``is_refused``).
        """
        # Each time from the root: git's trees are small beside the files in them.
        return self._folder(tree, "", whole) or self._write([])

    def _folder(self, tree: Tree, path: str, whole: bool) -> pygit2.Oid | None:
        lines: list[tuple[bytes, bytes]] = []
        for name in tree.names(path):
            place = f"{path}/{name}" if path else name
            entry = tree.get(place)
            if entry is None or (not whole and is_refused(name, entry)):
                continue
            raw = os.fsencode(name)
            if entry.kind is Kind.DIRECTORY:
                subtree = self._folder(tree, place, whole)
                if subtree is not None:
                    # Git sorts a directory as if its name ended in a slash.
                    lines.append((raw + b"/", _line(_TREE, raw, subtree)))
            else:
                lines.append((raw, _line(git_mode(entry), raw, self._blob(entry))))
        return self._write([line for _, line in sorted(lines)]) if lines else None

    def _write(self, lines: list[bytes]) -> pygit2.Oid:
        # pygit2's tree builder takes only names that are UTF-8.
        return self.repository.odb.write(ObjectType.TREE, b"".join(lines))

    def _blob(self, entry: Entry) -> pygit2.Oid:
        if entry.kind is Kind.LINK:
            return self.repository.create_blob(os.fsencode(entry.content))
        blob = self._blobs.get(entry.content)
        if blob is None:
            blob = self.repository.create_blob(self._read(entry))
            self._blobs[entry.content] = blob
        return blob


def git_mode(entry: Entry) -> int:
    """A file's or link's mode as git has it: of permissions, only whether its owner may run it."""
    if entry.kind is Kind.LINK:
        return _LINK
    return _EXECUTABLE if entry.mode & 0o100 else _FILE


@contextmanager
def scratch(read: Callable[[Entry], bytes]) -> Iterator[GitObjects]:
    """A repository for the time being."""
    own_settings()
    with tempfile.TemporaryDirectory(prefix="holdfast-git-") as folder:
        yield GitObjects(pygit2.init_repository(folder, bare=True), read)


@cache
def own_settings() -> None:
    """Have libgit2 read no settings of the user's or the system's: they change what is text, how
    lines end, and which names are ignored.
    """
    for level in (ConfigLevel.GLOBAL, ConfigLevel.XDG, ConfigLevel.SYSTEM):
        pygit2.settings.search_path[level] = ""


def _line(mode: int, name: bytes, oid: pygit2.Oid) -> bytes:
    return b"%o %s\0%s" % (mode, name, oid.raw)
