"""Bringing what a job changed to files that may have changed meanwhile: three-way, against what
the job began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pygit2
from pygit2.enums import FileMode

from runtime.archive.trees import Trees
from runtime.trees.entries import Entry, file_entry, is_directory
from runtime.trees.tree import Tree
from runtime.workspace.git.objects import GitObjects, scratch

_LOOKED_AT = 8_000
"""So many bytes tell whether a file is text, as in git."""

_NUL = "\u0100"
"""In place of a NUL while a merge is made; no byte is this character."""

Fate = Literal["take", "merge", "conflict", "kept"]


@dataclass(frozen=True)
class Planned:
    """What is to become of one path.

    ``take``: as the job left it. ``merge``: both changed it, in different places. ``conflict``:
    in the same; ``why`` says how, and with ``data`` there are lines that tell both. ``kept``: it
    stays as it is, for the reason ``why``. ``was`` is what is there, ``entry`` what will be (None:
    nothing), ``data`` a file's bytes.
    """

    fate: Fate
    path: str
    was: Entry | None
    entry: Entry | None
    data: bytes = b""
    why: str = ""

    @property
    def letter(self) -> str:
        """A, M or D, as of any change."""
        return "D" if self.entry is None else "A" if self.was is None else "M"

    @property
    def has_markers(self) -> bool:
        """Whether it is a conflict that lines in the file can tell."""
        return self.fate == "conflict" and bool(self.data)


class Merge:
    """A merge of ``job`` into ``user``, both made from ``base``. ``read`` gives the bytes of the
    user's file at a path; ``left`` are the paths of what is there and in no tree.
    """

    def __init__(
        self,
        trees: Trees,
        base: Tree,
        job: Tree,
        read: Callable[[str], bytes],
        left: Sequence[str],
    ) -> None:
        self._trees = trees
        self._base = base
        self._job = job
        self._read = read
        self._left = left

    def plan(self, user: Tree) -> tuple[Planned, ...]:
        """What is to become of each path that the job changed, in the order of trees.

        What is as the job left it already, or has its changes beside the user's, is not named.
        """
        result = user
        planned: list[Planned] = []
        with scratch(self._trees.content) as objects:
            for path in self._changed():
                path_plan = self._one(path, result, objects)
                if path_plan is None:
                    continue
                planned.append(path_plan)
                # What comes later is planned against what will be there by then.
                if path_plan.fate in {"take", "merge"}:
                    result = result.changed({path: path_plan.entry})
        return tuple(planned)

    def _changed(self) -> Iterator[str]:
        """The paths; those that were in a directory that is gone come before it."""
        for path, entry in self._base.difference(self._job).items():
            was = self._base.get(path)
            if is_directory(was) and not is_directory(entry):
                yield from (place for place, _ in reversed(list(self._base.under(path))))
            yield path

    def _one(self, path: str, user: Tree, objects: GitObjects) -> Planned | None:
        base, job, here = self._base.get(path), self._job.get(path), user.get(path)
        if is_directory(job) or (job is None and is_directory(base)):
            return _directory(path, base, job, here, user)
        if here == job:
            return None
        blocked = _blocked(path, user)
        if blocked and job is not None:
            return Planned("conflict", path, here, job, why=f"{blocked} is no directory here")
        if is_directory(here) and job is not None and self._holds(path, user):
            why = "the directory is not empty here"
            return Planned("conflict", path, here, job, why=why)
        if here == base or (is_directory(base) and is_directory(here)):
            data = self._trees.content(job) if job is not None and job.is_file else b""
            return Planned("take", path, here, job, data)
        both = self._both(path, base, job, here, objects)
        return None if both.fate == "merge" and both.entry == here else both

    def _holds(self, path: str, user: Tree) -> bool:
        """Whether something of the user's is in a directory."""
        left = any(place.startswith(f"{path}/") for place in self._left)
        return left or bool(user.names(path))

    def _both(
        self,
        path: str,
        base: Entry | None,
        job: Entry | None,
        here: Entry | None,
        objects: GitObjects,
    ) -> Planned:
        """A path that the job and the user changed, each in another way."""
        if job is None:
            return Planned("conflict", path, here, None, why="the job deleted it, you changed it")
        if here is None:
            return Planned("conflict", path, None, job, why="you deleted it, the job changed it")
        if not job.is_file or not here.is_file:
            return Planned("conflict", path, here, job, why="both changed it, and not as text")
        old = self._trees.content(base) if base is not None and base.is_file else b""
        ours, theirs = self._read(path), self._trees.content(job)
        mode = _mode(base, job, here)
        if here.content == job.content or (base is not None and base.content == job.content):
            return Planned("merge", path, here, file_entry(ours, mode), ours)
        if base is not None and base.content == here.content:
            return Planned("merge", path, here, file_entry(theirs, mode), theirs)
        if any(b"\0" in data[:_LOOKED_AT] for data in (old, ours, theirs)):
            return Planned("conflict", path, here, job, why="both changed it, and it is no text")
        clean, merged = _merged(objects.repository, old, ours, theirs)
        fate: Fate = "merge" if clean else "conflict"
        why = "" if clean else "both changed the same lines" if base else "both added it"
        return Planned(fate, path, here, file_entry(merged, mode), merged, why)


def _directory(
    path: str, base: Entry | None, job: Entry | None, here: Entry | None, user: Tree
) -> Planned | None:
    """A directory that the job made, removed, or gave another mode."""
    if job is None:
        if not is_directory(here):
            return None
        if user.names(path):
            return Planned("kept", path, here, here, why="the directory is not empty here")
        return Planned("take", path, here, None)
    if is_directory(here):
        if base is None or here == job:
            return None
        return Planned("take", path, here, job) if here == base else None
    if here == base or here is None:
        return Planned("take", path, here, job) if not is_directory(base) else None
    return Planned("conflict", path, here, job, why="it is a directory of the job's, not here")


def _blocked(path: str, user: Tree) -> str:
    """The first of the directories above a path that is something else here."""
    names = path.split("/")
    for count in range(1, len(names)):
        above = "/".join(names[:count])
        entry = user.get(above)
        if entry is not None and not is_directory(entry):
            return above
    return ""


def _merged(
    repository: pygit2.Repository, old: bytes, ours: bytes, theirs: bytes
) -> tuple[bool, bytes]:
    """A merge by lines: whether no line is in conflict, and the text, with markers if some are."""

    def entry(data: bytes, name: str) -> pygit2.IndexEntry:
        # pygit2 gives a text, which must be the same bytes again whatever their encoding is. It
        # ends at a NUL, so that is another character meanwhile.
        told = data.decode("latin-1").replace("\0", _NUL).encode("utf-8")
        return pygit2.IndexEntry(name, repository.create_blob(told), FileMode.BLOB)

    result = repository.merge_file_from_index(
        entry(old, "before"), entry(ours, "yours"), entry(theirs, "the job's")
    )
    if isinstance(result, str):
        raise TypeError("pygit2 gave a text in place of a result")
    return result.automergeable, result.contents.replace(_NUL, "\0").encode("latin-1")


def _mode(base: Entry | None, job: Entry, here: Entry) -> int:
    """The mode after both: the job's, if it changed it and the user did not."""
    was = None if base is None else base.mode
    return job.mode if here.mode == was else here.mode
