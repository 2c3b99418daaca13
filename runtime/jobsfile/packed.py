"""Many values of one kind, packed: jobs and items of a file that may have a million of them.

They lie compressed in a file without a name, which is in memory while it is small, in pages of
which one is open at a time. So they can be gone through any number of times, always as they were
read the first time, and what they take of memory does not grow with them.
"""

from __future__ import annotations

import json
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import zstandard

from runtime.base.errors import InputError

T = TypeVar("T")

MOST_ON_PAGE, PAGE_CHARACTERS = 128, 1024 * 1024
"""Of a page: the values, and the characters of JSON after which no further one is added."""

IN_MEMORY = 4 * 1024 * 1024
"""Bytes, compressed, above which they lie on a disk."""


class Packed(Sequence[T], Generic[T]):
    """Some values in their order.

    Args:
        values: what is packed; each is let go before the next is asked for.
        dump: a value as JSON has it.
        load: a value again.

    Raises:
        InputError: the directory of temporary files has no room for them.
    """

    def __init__(
        self, values: Iterable[T], dump: Callable[[T], Any], load: Callable[[Any], T]
    ) -> None:
        self._load = load
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        # When nobody has it any more, or the program ends; an exception in the constructor
        # included.
        weakref.finalize(self, self._file.close)
        self._reading = threading.Lock()
        self._firsts: list[int] = []
        self._ends = [0]
        self._size = 0
        for page in _pages(json.dumps(dump(value)) for value in values):
            self._put(page)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for page in range(len(self._firsts)):
            for line in self._lines(page):
                yield self._load(json.loads(line))

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return list(self._some(range(self._size)[index]))
        return next(self._some([range(self._size)[index]]))

    def _some(self, places: Iterable[int]) -> Iterator[T]:
        open_page, lines = -1, list[str]()
        for place in places:
            page = bisect_right(self._firsts, place) - 1
            if page != open_page:
                open_page, lines = page, self._lines(page)
            yield self._load(json.loads(lines[place - self._firsts[page]]))

    def _put(self, lines: list[str]) -> None:
        """Write a page.

        Raises:
            InputError: it has no room.
        """
        data = zstandard.compress("\n".join(lines).encode(), 1)
        try:
            self._file.write(data)
            # Here, where a full disk can be told, and not at some later reading.
            self._file.flush()
        except OSError as error:
            raise InputError(
                f"cannot write to {tempfile.gettempdir()}, where many jobs are kept while they are"
                f" checked: {error.strerror}. Make room there, or name another directory in TMPDIR"
            ) from None
        self._firsts.append(self._size)
        self._ends.append(self._ends[-1] + len(data))
        self._size += len(lines)

    def _lines(self, page: int) -> list[str]:
        """The JSON of a page's values."""
        start, end = self._ends[page : page + 2]
        # Threads share the file's position.
        with self._reading:
            self._file.seek(start)
            data = self._file.read(end - start)
        return zstandard.decompress(data).decode().split("\n")


def _pages(lines: Iterable[str]) -> Iterator[list[str]]:
    page, room = list[str](), PAGE_CHARACTERS
    for line in lines:
        page.append(line)
        room -= len(line)
        if len(page) == MOST_ON_PAGE or room <= 0:
            yield page
            page, room = [], PAGE_CHARACTERS
    if page:
        yield page


def as_it_is(value: Any) -> Any:
    """A value that is one of JSON's already."""
    return value
