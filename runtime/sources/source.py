"""A source, as the read activity takes it: opened, it is text with a fingerprint, whatever it was
before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runtime.context.outlines import Item

Mask = Callable[[bytes], bytes]
"""Masks what is secret in some bytes."""


ENDS = {
    "text/markdown": ".md",
    "text/html": ".html",
    "application/json": ".json",
    "text/csv": ".csv",
    "text/x-python": ".py",
    "application/x-yaml": ".yaml",
    "application/yaml": ".yaml",
    "application/xml": ".xml",
}
"""The ends of names by whose means a kind of text is known."""


@dataclass(frozen=True)
class Opened:
    """A source's content.

    Equal fingerprints mean equal content; ``size`` is the source's own, in bytes.

    ``name`` is that by whose end the kind of content is known. ``note`` is what a reader must know
    of it (it was being written, only its ends are here). ``outline`` gives the structure of what is
    no text of its own, such as a directory.
    """

    data: bytes
    fingerprint: str
    size: int
    name: str
    note: str = ""
    outline: Callable[[Mask], tuple[Item, ...]] | None = None


@dataclass(frozen=True)
class Known:
    """What can be told of a source without reading it."""

    fingerprint: str
    size: int


class Source(Protocol):
    """Something to read."""

    def known(self) -> Known | None:
        """The fingerprint that the source has now, if that can be told without reading it."""
        ...

    def open(self) -> Opened:
        """The content.

        Raises:
            OSError: if it cannot be read, its text naming the source as the model does.
            ValueError: if there can be no such source.
        """
        ...
