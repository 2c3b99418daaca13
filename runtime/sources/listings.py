"""Directories and globs as sources: a line for each file, and an outline of what the files are or
hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from runtime.base.digests import digest_of
from runtime.base.fences import one_line
from runtime.base.host_trouble import host_trouble
from runtime.context.excerpts import suffix_of
from runtime.context.outlines import MAX_ITEMS, Item
from runtime.context.source_text import SourceText
from runtime.sources.outlining import outline_apart
from runtime.sources.source import Known, Mask, Opened
from runtime.workspace.files import Workspace
from runtime.workspace.glob import Listed, Matches, globbed

OUTLINED_FILES = 200
"""Files of a glob whose symbols are in its outline, and the bytes of one of them; the others are
only named.
"""
OUTLINED_BYTES = 64 * 1024

TREE_DIRECTORIES = 2_000
"""Directories in the outline of a directory."""

UNSEEN = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Directories that an outline names and does not look into."""


@dataclass(frozen=True)
class DirectorySource:
    """The directory ``path``: its entries, directories with a slash, files with their sizes."""

    workspace: Workspace
    path: str

    def known(self) -> Known | None:
        """Never: a directory must be listed."""
        return None

    def open(self) -> Opened:
        """The entries, sorted by name."""
        entries = self.workspace.entries(self.path)
        lines = [_line(entry, entry.name) for entry in entries]
        return _listing(lines, entries, self.path, lambda mask: self._outline(entries))

    def _outline(self, entries: Sequence[Listed]) -> tuple[Item, ...]:
        """The tree of directories, with how many files of which kinds are in each."""
        items = [Item(0, 0, _counted("./", entries))]
        # A stack, the last first: so the tree comes in the order of names.
        waiting = [(name, name, 1) for name in _directories(entries)][::-1]
        while waiting:
            place, name, level = waiting.pop()
            if len(items) == TREE_DIRECTORIES:
                items.append(
                    Item(0, 1, f"… only the first {TREE_DIRECTORIES:,} directories are listed")
                )
                break
            if name in UNSEEN:
                items.append(Item(0, level, f"{name}/ …"))
                continue
            try:
                inside = self.workspace.entries(f"{self.path}/{place}")
            except OSError as error:
                if host_trouble(error):
                    raise
                items.append(Item(0, level, f"{name}/ cannot be listed: {error.strerror}"))
                continue
            items.append(Item(0, level, _counted(f"{name}/", inside)))
            waiting += [(f"{place}/{below}", below, level + 1) for below in _directories(inside)][
                ::-1
            ]
        return tuple(items)


@dataclass(frozen=True)
class GlobSource:
    """The files that ``pattern`` matches; ``**`` stands for any number of directories."""

    workspace: Workspace
    pattern: str

    def known(self) -> Known | None:
        """Never: the files must be looked for."""
        return None

    def open(self) -> Opened:
        """The files' paths, in the order of their names, and sizes."""
        matches = globbed(self.workspace, self.pattern)
        if not matches.files:
            raise FileNotFoundError(2, "No file matches the pattern", self.pattern)
        lines = [_line(entry, path) for path, entry in matches.files]
        cut = _cut(matches)
        entries = [replace(entry, name=path) for path, entry in matches.files]
        return _listing(
            [*cut, *lines], entries, self.pattern, lambda mask: self._outline(entries, cut, mask)
        )

    def _outline(
        self, entries: Sequence[Listed], cut: Sequence[str], mask: Mask
    ) -> tuple[Item, ...]:
        """Each file, and below it the symbols that it defines."""
        items: list[Item] = [Item(0, 0, line) for line in cut]
        for number, entry in enumerate(entries[:OUTLINED_FILES]):
            items.append(Item(number + len(cut), 0, _line(entry, entry.name)))
            items += [replace(item, level=item.level + 1) for item in self._symbols(entry, mask)]
        further = enumerate(entries[OUTLINED_FILES:], OUTLINED_FILES + len(cut))
        items += [Item(number, 0, _line(entry, entry.name)) for number, entry in further]
        return tuple(items[:MAX_ITEMS])

    def _symbols(self, entry: Listed, mask: Mask) -> tuple[Item, ...]:
        if entry.size > OUTLINED_BYTES or entry.is_dir:
            return ()
        try:
            content = self.workspace.content(entry.name)
        except OSError as error:
            if host_trouble(error):
                raise
            return ()
        source = SourceText.of(content.data)
        text = mask(source.data).decode("utf-8", "replace")
        return () if source.binary else outline_apart(text, suffix_of(entry.name))


def _cut(matches: Matches) -> list[str]:
    """The line above a listing that says what is not in it, if something is not."""
    if matches.whole and not matches.left_out:
        return []
    unseen = "not all directories were looked into"
    more = f"{matches.left_out:,} more match" if matches.left_out else unseen
    if matches.left_out and not matches.whole:
        more += f", and {unseen}"
    return [f"[the first {len(matches.files):,} files; {more}: narrow the pattern]"]


def is_pattern(path: str) -> bool:
    """Whether ``path`` has a character that means something in a glob."""
    return any(letter in path for letter in "*?[")


def _listing(
    lines: Sequence[str],
    entries: Sequence[Listed],
    name: str,
    items: Callable[[Mask], tuple[Item, ...]],
) -> Opened:
    text = "".join(f"{line}\n" for line in lines)
    # The times are no part of the text: they say that a file may be another although its size is
    # the same.
    fingerprint = digest_of([text, [entry.modified for entry in entries]])
    return Opened(
        text.encode("utf-8", "replace"), fingerprint, len(entries), f"{name}/", outline=items
    )


def _line(entry: Listed, name: str) -> str:
    name = one_line(name)
    if entry.is_dir:
        return f"{name}/{'  link' if entry.is_link else ''}"
    if not entry.is_file:
        return f"{name}  {'broken link' if entry.is_link else 'no regular file'}"
    return f"{name}  {entry.size:,} bytes"


def _directories(entries: Iterable[Listed]) -> list[str]:
    # A link may lead back up, and round in circles.
    return [entry.name for entry in entries if entry.is_dir and not entry.is_link]


def _counted(name: str, entries: Sequence[Listed]) -> str:
    kinds = Counter(suffix_of(entry.name) or "others" for entry in entries if not entry.is_dir)
    total = sum(kinds.values())
    if not total:
        return f"{name} no files"
    most = ", ".join(
        f"{count:,} {kind}"
        for kind, count in sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:5]
    )
    return f"{name} {total:,} {'file' if total == 1 else 'files'}: {most}"
