"""Where two states of one variable differ: ``acc[40]``, ``p.x``, ``conf['a']['b']``,
``text[1200:1210]``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from runtime.interpreter.contents import Contents, items_of

MAX_PATHS: Final = 8
"""Places that a diff names of one variable."""

MORE: Final = "…"
"""Stands after as many places as are named, if there are more."""

_MIN_SLICE: Final = 40
"""Characters from which a changed text is told by the place in it."""


def changed_paths(name: str, old: Contents, new: Contents) -> tuple[str, ...]:
    """The places in ``name`` that differ, from the outside in; the name itself if no place within
    it can be told.
    """
    before, after = old.roots.get(name), new.roots.get(name)
    if before is None or after is None:
        return (name,)
    # One more than are named, which tells that there are more.
    places = list(islice(_Comparison(old, new).paths(before, after, name), MAX_PATHS + 1))
    return tuple([*places[:MAX_PATHS], MORE] if len(places) > MAX_PATHS else places) or (name,)


class _Comparison:
    """Two contents side by side, each pair of nodes looked at once."""

    def __init__(self, old: Contents, new: Contents) -> None:
        self._old = old
        self._new = new

    def paths(self, before: str, after: str, path: str) -> Iterator[str]:
        """The differing places of two items and all that they hold."""
        pairs = deque([(before, after, path)])
        # Values may hold themselves, and the comparison has to end.
        seen: set[tuple[str, str]] = set()
        while pairs:
            one, other, place = pairs.popleft()
            if one.startswith("@") and other.startswith("@"):
                if (one, other) not in seen:
                    seen.add((one, other))
                    yield from self._nodes(int(one[1:]), int(other[1:]), place, pairs)
            elif one.startswith("@") or other.startswith("@"):
                yield from self._texts(
                    self._text(self._old, one), self._text(self._new, other), place
                )
            elif one != other:
                yield from self._texts(one, other, place)

    def _nodes(
        self, one: int, other: int, place: str, pairs: deque[tuple[str, str, str]]
    ) -> Iterator[str]:
        kind, _, parts = self._old.parts(one)
        kind_now, _, parts_now = self._new.parts(other)
        if kind[0] in "mdic" and kind == kind_now:
            if kind[0] == "m":
                yield from self._sequences(parts, parts_now, place, pairs)
            else:
                yield from self._named(one, other, place, pairs)
            if kind[0] == "c" and self._old.definitions.sources.get(
                kind[1:]
            ) != self._new.definitions.sources.get(kind[1:]):
                yield place
        elif (kind[0] in "md" and kind_now.startswith("=")) or (
            kind.startswith("=") and kind_now[:1] in "md"
        ):
            yield from self._mixed(one, other, place)
        elif self._old.leaf(one) != self._new.leaf(other):
            yield from self._texts(
                self._text(self._old, f"@{one}"), self._text(self._new, f"@{other}"), place
            )

    def _sequences(
        self, old: Sequence[str], new: Sequence[str], place: str, pairs: deque[tuple[str, str, str]]
    ) -> Iterator[str]:
        """Items by index; where the lengths differ, the stretch that is not the same at both
        ends.
        """
        if len(old) == len(new):
            pairs.extend(
                (a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(old, new, strict=True))
            )
            return
        common = min(len(old), len(new))
        pairs.extend((old[i], new[i], f"{place}[{i}]") for i in range(common))
        yield _span(place, common, max(len(old), len(new)))

    def _named(
        self, one: int, other: int, place: str, pairs: deque[tuple[str, str, str]]
    ) -> Iterator[str]:
        before = self._by_label(self._old, one)
        after = self._by_label(self._new, other)
        if list(before) != list(after) and before.keys() == after.keys():
            yield f"{place} (the order of its keys)"
        for label in dict.fromkeys([*before, *after]):
            if label in before and label in after:
                pairs.append((before[label], after[label], place + label))
            else:
                yield place + label

    @staticmethod
    def _by_label(contents: Contents, node: int) -> dict[str, str]:
        _, labels, parts = contents.parts(node)
        return {
            contents.label(node, label): part for label, part in zip(labels, parts, strict=True)
        }

    def _mixed(self, one: int, other: int, place: str) -> Iterator[str]:
        """A container of plain values that became one of containers, or the other way round."""
        before, after = self._literals(self._old, one), self._literals(self._new, other)
        if before is None or after is None or isinstance(before, dict) != isinstance(after, dict):
            yield place
        else:
            yield from _compared(before, after, place)

    @staticmethod
    def _literals(contents: Contents, node: int) -> list[str] | dict[str, str] | None:
        kind, labels, parts = contents.parts(node)
        match kind[:1]:
            case "m":
                return parts
            case "d":
                return {
                    contents.label(node, label): part
                    for label, part in zip(labels, parts, strict=True)
                }
            case _:
                return _reprs(contents.lines[node][1:])

    @staticmethod
    def _text(contents: Contents, item: str) -> str:
        if not item.startswith("@"):
            return item
        line = contents.lines[int(item[1:])]
        return line[1:] if line.startswith("=") else line

    @staticmethod
    def _texts(before: str, after: str, place: str) -> Iterator[str]:
        if before == after:
            return
        old, new = _reprs(before), _reprs(after)
        if old is not None and new is not None and before[0] == after[0]:
            yield from _compared(old, new, place)
        elif (
            before[:1] in ("'", '"')
            and after[:1] in ("'", '"')
            and min(len(before), len(after)) > _MIN_SLICE
        ):
            yield _slice(before, after, place)
        else:
            yield place


def _compared(
    old: list[str] | dict[str, str], new: list[str] | dict[str, str], place: str
) -> Iterator[str]:
    """The differing places of plain containers whose items are literals."""
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() == new.keys() and list(old) != list(new):
            yield f"{place} (the order of its keys)"
        yield from (
            place + key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)
        )
    elif isinstance(old, list) and isinstance(new, list):
        common = min(len(old), len(new))
        yield from (f"{place}[{i}]" for i in range(common) if old[i] != new[i])
        if len(old) != len(new):
            yield _span(place, common, max(len(old), len(new)))


def _span(place: str, first: int, end: int) -> str:
    return f"{place}[{first}]" if end - first == 1 else f"{place}[{first}:{end}]"


def _reprs(text: str) -> list[str] | dict[str, str] | None:
    """The items of a plain container's literal as literals, by label in a dict."""
    # A list without texts and tuples in it can be taken apart unparsed, however long it is.
    simple = text[:1] == "[" and not any(mark in text for mark in "'\"(")
    if simple:
        return text[1:-1].split(", ") if len(text) > 2 else []
    value = items_of(text)
    if isinstance(value, dict):
        return {f"[{key!r}]": repr(item) for key, item in value.items()}
    return None if value is None else list(map(repr, value))


def _slice(before: str, after: str, place: str) -> str:
    """The stretch of a text, as its literal counts characters, that is not the same at both
    ends.
    """
    old, new = before[1:-1], after[1:-1]
    start = _common(old, new)
    # What both begin with must not count for the end once more, as in "aa" and "aaa".
    shortest = min(len(old), len(new)) - start
    end = _common(old[::-1][:shortest], new[::-1][:shortest])
    return f"{place}[{start}:{max(len(old), len(new)) - end}]"


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
