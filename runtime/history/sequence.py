"""A read-only sequence over the beginning of a list that only ever grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Prefix(Sequence[T_co], Generic[T_co]):
    """The first ``length`` items of ``items``, without a copy.

    Equal to any sequence with the same items.

    Whoever made it may append to ``items``, and must not change what is there already.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T_co], length: int) -> None:
        self._items = items
        self._length = length

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        if isinstance(index, slice):
            return tuple(self._items[i] for i in range(*index.indices(self._length)))
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(f"index {index} of a sequence of {self._length}")
        return self._items[place]

    def __len__(self) -> int:
        return self._length

    # The list may have grown since, and an iterator of its own would go on to the new end.
    def __iter__(self) -> Iterator[T_co]:
        return islice(iter(self._items), self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{list(self)!r}"
