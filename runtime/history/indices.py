"""Manipulation indices: the gaps of a View at which events may be inserted, and between which they
may be forgotten.

The View keeps its indices as a stack that is never changed in place: an append only drops indices
from its end and adds one, so a value handed out stays right for the View it was read from, and
reading costs nothing. Every entry also knows one far below it (Myers, "An applicative random-access
stack", 1983), so a search takes logarithmic time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set


class NoNextIndex(LookupError):
    """There is no index on the side of the threshold that was asked for."""


class IndexNode:
    """One index and the stack below it. The bottom node has depth 0 and stands for no index."""

    __slots__ = ("below", "depth", "index", "jump")

    def __init__(self, index: int, below: IndexNode | None) -> None:
        self.index = index
        if below is None:
            # The bottom is below itself: who walks down the stack then needs no look for None.
            self.depth, self.below, self.jump = 0, self, self
            return
        self.depth = below.depth + 1
        self.below = below
        far = below.jump
        # Two jumps of the same length are made one: so any depth is a few hops away.
        self.jump = far.jump if below.depth - far.depth == far.depth - far.jump.depth else below


BOTTOM = IndexNode(-1, None)


class ManipulationIndices(Set[int]):
    """A frozen, sorted set of gaps: ``0`` is before the first event, ``len(events)`` after the
    last.
    """

    __slots__ = ("_top",)

    def __init__(self, indices: Iterable[int] = ()) -> None:
        top = BOTTOM
        for index in sorted(set(indices)):
            top = IndexNode(index, top)
        self._top = top

    @classmethod
    def of_stack(cls, top: IndexNode) -> ManipulationIndices:
        """The indices of a stack, without copying them."""
        made = cls.__new__(cls)
        made._top = top
        return made

    def find_next(self, threshold: int, strict: bool = False) -> int:
        """The smallest index at or above ``threshold``; above it if ``strict``.

        Raises:
            NoNextIndex: if there is none.
        """
        least = threshold + 1 if strict else threshold
        node = self._lowest_at_or_above(least)
        if node is None:
            raise NoNextIndex(f"no manipulation index at or above {least}")
        return node.index

    def find_previous(self, threshold: int) -> int:
        """The greatest index at or below ``threshold``.

        Raises:
            NoNextIndex: if there is none.
        """
        above = self._lowest_at_or_above(threshold + 1)
        node = self._top if above is None else above.below
        if not node.depth:
            raise NoNextIndex(f"no manipulation index at or below {threshold}")
        return node.index

    def _lowest_at_or_above(self, least: int) -> IndexNode | None:
        node = self._top
        if not node.depth or node.index < least:
            return None
        while True:
            if node.jump.depth and node.jump.index >= least:
                node = node.jump
            elif node.below.depth and node.below.index >= least:
                node = node.below
            else:
                return node

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        node = self._lowest_at_or_above(index)
        return node is not None and node.index == index

    def __iter__(self) -> Iterator[int]:
        indices: list[int] = []
        node = self._top
        while node.depth:
            indices.append(node.index)
            node = node.below
        return reversed(indices)

    def __len__(self) -> int:
        return self._top.depth

    # ``Set`` defines equality, by which Python takes the hash away.
    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        return f"ManipulationIndices({list(self)})"
