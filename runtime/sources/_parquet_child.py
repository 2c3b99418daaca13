"""The process that reads one Parquet file: started with ``own_process.command``, the file as its
input.

A file may be made to crash what reads it, or to unpack to any size. So it is read here, in a
process of its own with hard limits, and what is found is told line by line, as JSON: the columns
and the first rows, then how many rows there are.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from typing import Any

from runtime.base.own_process import bound_memory

MEMORY = 1024**3
"""Bytes of address space."""

CPU_SECONDS = 5

COLUMNS = 500
"""Columns that are told."""

ROWS = 3
"""Rows of which the values are told."""

VALUE_CHARS = 400
"""Characters of a value."""

COUNTED_ROWS = 100_000
"""Rows are counted so far, by reading them."""


def main() -> None:
    """Read, and tell."""
    bound_memory(MEMORY)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    _tell(_head)
    _tell(_count)


def _tell(find: Callable[[Any], dict[str, Any]]) -> None:
    from arro3.io import read_parquet

    try:
        with open(0, "rb", closefd=False) as file:
            # From the beginning, since the file is read twice: for its head, and for its number of
            # rows.
            file.seek(0)
            answer = find(lambda batch_size: read_parquet(file, batch_size=batch_size))
    except BaseException as error:  # noqa: BLE001  (a panic of the library is no Exception)
        _print({"error": str(error)[:VALUE_CHARS] or type(error).__name__})
        sys.exit(1)
    _print(answer)


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    # At once: what was told counts, also if this process is ended over the next line.
    sys.stdout.flush()


def _head(read: Any) -> dict[str, Any]:
    reader = read(ROWS)
    fields = [(str(field.name)[:VALUE_CHARS], _type_of(field.type)) for field in reader.schema]
    batch: Any = next(iter(reader), None)
    shown = range(min(len(fields), COLUMNS))
    values: list[list[str]] = []
    for row in range(0 if batch is None else min(batch.num_rows, ROWS)):
        values.append([_value(batch.column(column)[row].as_py()) for column in shown])
    return {"width": len(fields), "columns": fields[:COLUMNS], "rows": values}


def _count(read: Any) -> dict[str, Any]:
    rows = 0
    for batch in read(8192):
        rows += batch.num_rows
        if rows > COUNTED_ROWS:
            return {"rows": COUNTED_ROWS, "more": True}
    return {"rows": rows, "more": False}


def _type_of(kind: Any) -> str:
    """``Int64`` of ``arro3.core.DataType<Int64>``."""
    return str(kind).strip().removeprefix("arro3.core.DataType<").removesuffix(">")[:VALUE_CHARS]


def _value(value: Any) -> str:
    return ("" if value is None else str(value))[:VALUE_CHARS]


if __name__ == "__main__":
    main()
