"""Outlines of tables in text: the columns with what their values look like, and the number of
rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice

from runtime.context.outlines.items import VALUE_CHARS, Item, one_line

SAMPLED_ROWS = 200
"""Rows whose values tell a column's kind."""

MAX_COLUMNS = 500
"""Columns that are named."""


def table(text: str, separator: str) -> Iterator[Item]:
    """The columns of a CSV text whose first row names them; none where the rows are not of one
    width.
    """
    rows = _rows(text, separator)
    header = next(rows, [])
    sample = list(islice(rows, SAMPLED_ROWS))
    # The last row may be cut: only the start of a large source is outlined.
    if len(header) < 2 or any(len(row) != len(header) for row in sample[:-1]):
        return
    yield Item(
        0,
        0,
        f"{len(header):,} columns, {text.count(chr(10)) - text.endswith(chr(10)):,} lines after the"
        " header",
    )
    for place, name in enumerate(header[:MAX_COLUMNS]):
        values = [row[place] for row in sample if len(row) == len(header)]
        yield Item(0, 1, f"{name.strip() or f'column {place}'}: {_kind(values)}")
    if len(header) > MAX_COLUMNS:
        yield Item(0, 1, f"… {len(header) - MAX_COLUMNS:,} more columns")


def _rows(text: str, separator: str) -> Iterator[Sequence[str]]:
    """The rows up to one that is none."""
    rows = csv.reader(text.split("\n"), delimiter=separator)
    while True:
        try:
            row = next(rows)
        except (StopIteration, csv.Error):
            return
        if row:
            yield row


def _kind(values: Sequence[str]) -> str:
    """What a column's values are, and one of them."""
    filled = [value for value in values if value.strip()]
    if not filled:
        return "empty" if values else "no rows"
    kind = "text"
    for name, convert in (("integer", int), ("number", float)):
        if all(_is(convert, value) for value in filled):
            kind = name
            break
    empty = f", {len(values) - len(filled)} empty" if len(filled) < len(values) else ""
    return f"{kind}{empty}, e.g. {one_line(filled[0], VALUE_CHARS)}"


def _is(convert: type[int] | type[float], value: str) -> bool:
    try:
        convert(value)
    except ValueError:
        return False
    return True
