"""Blocks of a document that a program writes: each stands between two marks that carry its name."""

from __future__ import annotations

import sys
from pathlib import Path


def block_of(document: str, name: str) -> str:
    """What stands between the marks of ``name``."""
    begin, end = _marks(name)
    return document.split(begin, 1)[1].split(end, 1)[0].strip()


def write_block(path: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks of ``name`` in the file ``path``."""
    begin, end = _marks(name)
    head, rest = path.read_text().split(begin, 1)
    path.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


def hand_over(text: str, name: str, document: Path | None) -> None:
    """Print what a program measured or made; with a document, put it between its marks there
    too.
    """
    sys.stdout.write(f"{text}\n")
    if document is not None:
        write_block(document, name, text)


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
