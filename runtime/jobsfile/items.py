"""The items of a job that stands for many (``for_each``): JSON lines, or a CSV file with a header.

They are read line by line and packed, however long the file is; what is wrong with each is told by
its line.
"""

from __future__ import annotations

import csv
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.jobsfile.packed import Packed
from runtime.jobsfile.problems import Lines, Location, Problems
from runtime.jobsfile.source import is_jsonl, json_line

MAX_LINE = 1024 * 1024
"""Bytes of one item."""

CSV_SUFFIX = ".csv"


@dataclass(frozen=True)
class Item:
    """One item: its line in its file, and its fields."""

    line: int
    fields: dict[str, Any]

    def as_json(self) -> list[Any]:
        """The item as JSON has it."""
        return [self.line, self.fields]

    @classmethod
    def of_json(cls, value: list[Any]) -> Item:
        """The item of ``as_json``."""
        return cls(*value)


class LinesOfItems(Lines):
    """The lines of items, each of which is called by its line."""

    def of(self, location: Location) -> int:
        """The line of ``("items", line, …)``."""
        return int(location[1])


def read_items(path: Path, problems: Problems) -> Packed[Item]:
    """The items of the file at ``path``, those left out that are none; ``problems`` are the file's
    own, with ``LinesOfItems``.

    Raises:
        InputError: no such file, one that cannot be read, or one without items.
    """
    csv_file = path.suffix.lower() == CSV_SUFFIX
    if not csv_file and not is_jsonl(path):
        raise InputError(f"expected a file .jsonl, .ndjson or .csv, got {shown(path.name)}")
    try:
        # A pipe may never end, or never begin.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"expected a file of items, got {shown(str(path))}, which is none")
        # newline="": the csv module reads line ends within quotes itself.
        # utf-8-sig: spreadsheets write a byte order mark.
        with path.open(encoding="utf-8-sig", newline="" if csv_file else "\n") as lines:
            read = _csv(lines, problems) if csv_file else _jsonl(lines, problems)
            items = Packed(read, Item.as_json, Item.of_json)
    except FileNotFoundError:
        raise InputError(f"no such file: {shown(str(path))}") from None
    except UnicodeDecodeError:
        raise InputError(f"expected UTF-8 in {shown(str(path))}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {shown(str(path))}: {error}") from None
    # Where all lines are wrong, that is what is told.
    if not items and not problems.by_location:
        raise InputError(f"expected at least one item in {shown(str(path))}, got none")
    return items


def _jsonl(lines: Iterator[str], problems: Problems) -> Iterator[Item]:
    for number, line in enumerate(_bounded(lines), start=1):
        if not line.strip():
            continue
        here = ("items", number)
        value = json_line(line.rstrip("\r\n"), here, problems)
        if isinstance(value, dict):
            yield Item(number, value)
        # ``null`` is None as well, and unlike a line that is no JSON it has not been noted.
        elif value is not None or here not in problems.by_location:
            problems.add(here, f"expected a JSON object, got {shown(value)}")


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE:
            raise ValueError(f"line {number} has more than {MAX_LINE} characters")
        yield line


def _csv(lines: Iterator[str], problems: Problems) -> Iterator[Item]:
    """The rows below the header; a row's line is the one on which it begins."""
    # Strict: else a quote that is never closed makes one cell of the rest of the file.
    rows = csv.reader(_bounded(lines), strict=True)
    header: list[str] | None = None
    before = 0
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add(("items", before + 1), f"bad CSV: {error}")
            return
        line, before = before + 1, rows.line_num
        here = ("items", line)
        # A blank line is an empty row to the module.
        if not row:
            continue
        if header is None:
            header = row
            for name in sorted({name for name in row if row.count(name) > 1}):
                problems.add(here, f"expected each column once, got {shown(name)} again")
        elif len(row) != len(header):
            problems.add(here, f"expected {len(header)} cells as in the header, got {len(row)}")
        else:
            yield Item(line, dict(zip(header, row, strict=True)))
