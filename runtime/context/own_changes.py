"""Views of files that the job itself changed: they are behind at once, and say which statement did
it (docs/workspaces.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname, normpath
from typing import Any

from runtime.context.index import creation_order
from runtime.context.sources import of_workspace
from runtime.context.states import Change, Written
from runtime.context.store import Cause, NodeStore

_MAGIC = "*?["
"""What makes a path a pattern."""


@dataclass(frozen=True)
class OwnChanges:
    """What one effect did to the files: ``letters`` are ``A``, ``M`` or ``D`` by path; of further
    changes only the folders ``within`` which they are.
    """

    letters: dict[str, str]
    within: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, changed: Iterable[tuple[str, str]], count: int, within: Sequence[str]
    ) -> OwnChanges:
        """From an effect's result. One of ``count`` paths that names neither all of them nor
        folders may have changed anything.
        """
        letters = dict(changed)
        # More changed than is named: the empty folder stands for all of them.
        return cls(letters, tuple(within) or ("",) * (count > len(letters)))

    @classmethod
    def told(cls, result: Mapping[str, Any]) -> OwnChanges:
        """From an effect's result as JSON, which leaves out what is empty."""
        changed, count = result.get("changed", ()), result.get("count", 0)
        return cls.of(changed, count, result.get("within", ()))

    def of_view(self, path: str, *, outlined: bool) -> Change | None:
        """What became of the source of a view of ``path``; None if nothing did. ``outlined``: of a
        folder it shows more than a listing.
        """
        named = normpath(path)
        # A file may have these characters in its name.
        if any(letter in path for letter in _MAGIC) and named not in self.letters:
            place = dirname(path[: min(path.find(m) for m in _MAGIC if m in path)])
            return Change.MAYBE if self._anything_in(normpath(place or ".")) else None
        if any(self.letters.get(above) == "D" for above in _self_and_above(named)):
            return Change.DELETED
        if named in self.letters or any(_folder(changed) == named for changed in self.letters):
            return Change.CHANGED
        if self._further(named) or (outlined and self._anything_in(named)):
            return Change.MAYBE
        return None

    def _anything_in(self, folder: str) -> bool:
        return any(_is_in(path, folder) for path in self.letters) or self._further(folder)

    def _further(self, path: str) -> bool:
        """Whether a change that is not named may be that of ``path``, or of something in it."""
        return any(not f or _is_in(path, f) or _is_in(f, path) for f in self.within)


def mark(store: NodeStore, changes: OwnChanges) -> None:
    """Mark all views whose source was changed, or may have been, by the statement under way."""
    paths = [path for path, views in store.index.paths.items() if views and of_workspace(path)]
    views = creation_order(o for path in paths for o in store.index.paths[path])
    for obj_id in views:
        state = store.view(obj_id)
        change = changes.of_view(state.path, outlined=state.base_lod > 0)
        if change is None:
            continue
        known = state.written if state.dirty.source_changed else None
        if change is Change.MAYBE and known is not None:
            # It says less than what is known already; but what is being read of the version before
            # is not what is there now.
            if known.turn == store.turn:
                continue
            written = known.evolve(later=store.turn)
        else:
            written = Written(turn=store.turn, change=change)
        dirty = state.dirty.evolve(source_changed=True)
        store.put(state.evolve(dirty=dirty, written=written), Cause.CALL)


def _is_in(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith(folder + "/")


def _folder(path: str) -> str:
    return dirname(path) or "."


def _self_and_above(path: str) -> Iterator[str]:
    while path not in {"", "/"}:
        yield path
        path = dirname(path)
