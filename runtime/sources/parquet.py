"""The structure of a Parquet file: its columns with their types and first values, and how many rows
it has.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from runtime.base.own_process import command, starting
from runtime.context.outlines.items import VALUE_CHARS, Item, one_line
from runtime.sources.source import Mask

SUFFIXES = (".parquet", ".pq")
SECONDS = 10.0
"""Of real time that a file's reading may take; its process has less of the processor
(``_parquet_child``).
"""


def parquet_outline(file: int, mask: Mask) -> tuple[Item, ...]:
    """The outline of the Parquet file open at the descriptor ``file``.

    One that cannot be read says why.

    Raises:
        NoProcess: if no process can be started to read it.
    """
    try:
        with starting():
            done = subprocess.run(
                command("runtime.sources._parquet_child"),
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                # What reads a foreign file needs no variable, and shall have no key.
                env={},
                check=False,
            )
        told, failed = done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired as error:
        # The columns may have been told before its time was over.
        told, failed = error.stdout or b"", True
    return tuple(
        _items(
            # The last line of a process that was ended may be half of one.
            [json.loads(line) for line in told.splitlines(keepends=True) if line.endswith(b"\n")],
            failed,
            mask,
        )
    )


def _items(told: list[dict[str, Any]], failed: bool, mask: Mask) -> Iterator[Item]:
    """The outline, from as many lines as the child came to tell."""
    head = told[0] if told else {}
    if "columns" not in head:
        yield Item(
            0,
            0,
            "cannot be read as Parquet:"
            f" {head.get('error') or 'it takes more memory or time than allowed'}",
        )
        return
    yield Item(
        0, 0, f"{head['width']:,} columns, {_rows(told[1] if len(told) > 1 else {}, failed)}"
    )
    rows = head["rows"]
    for place, (name, kind) in enumerate(head["columns"]):
        values = ", ".join(_shown(row[place], mask) for row in rows)
        yield Item(0, 1, f"{_shown(name, mask)}: {kind}" + (f", e.g. {values}" if rows else ""))
    if head["width"] > len(head["columns"]):
        yield Item(0, 1, f"… {head['width'] - len(head['columns']):,} more columns")


def _rows(count: dict[str, Any], failed: bool) -> str:
    if failed or "rows" not in count:
        return "rows that cannot be counted"
    return f"more than {count['rows']:,} rows" if count["more"] else f"{count['rows']:,} rows"


def _shown(text: str, mask: Mask) -> str:
    """A value without secrets, which are looked for before it is cut; an empty one as
    ``(empty)``.
    """
    masked = mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return one_line(masked, VALUE_CHARS) or "(empty)"
