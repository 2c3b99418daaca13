"""The shapes of what ``--json`` prints, as Markdown: those of ``docs/json-shapes.json``, which
tests compare with the commands.

``python -m docs_tools.json_shapes`` prints it; ``--write`` puts it between the marks of
``docs/json.md``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.blocks import hand_over

DOCUMENT = Path(__file__).parent.parent / "docs" / "json.md"
SHAPES = DOCUMENT.with_name("json-shapes.json")
BLOCK = "shapes"
_WIDTH = 120


def shapes() -> str:
    """A section for each document, in the order of the file."""
    pinned = json.loads(SHAPES.read_text())
    sections = (
        f"## `{name}`\n\n```text\n{_written(shape)}\n```"
        for name, shape in pinned["documents"].items()
    )
    return "\n\n".join([f"Version {pinned['version']}.", *sections])


def _written(shape: Any, indent: int = 0) -> str:
    """A shape on one line, or with a line for each key where that is too long."""
    flat = _flat(shape)
    if len(flat) + indent <= _WIDTH or isinstance(shape, str):
        return flat
    # A list's shape has one item, which stands for all of them.
    if isinstance(shape, list):
        return f"[{_written(shape[0], indent)}]"
    if "or null" in shape:
        return f"{_written(shape['or null'], indent)} | null"
    lines = [
        f"{' ' * (indent + 2)}{key}: {_written(value, indent + 2)}" for key, value in shape.items()
    ]
    return "\n".join(["{", *lines, " " * indent + "}"])


def _flat(shape: Any) -> str:
    return "".join(_pieces(shape))


def _pieces(shape: Any) -> Iterator[str]:
    if isinstance(shape, str):
        yield shape.replace("|", " | ")
    elif isinstance(shape, list):
        yield f"[{_flat(shape[0])}]"
    elif "or null" in shape:
        yield f"{_flat(shape['or null'])} | null"
    else:
        yield "{" + ", ".join(f"{key}: {_flat(value)}" for key, value in shape.items()) + "}"


if __name__ == "__main__":
    hand_over(shapes(), BLOCK, DOCUMENT if "--write" in sys.argv[1:] else None)
