"""The forms in which ``holdfast results`` writes its rows: each takes them one by one."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import IO, Any, Protocol, cast

from runtime.archive.standings import ResultRow
from runtime.base.plurals import counted
from runtime.base.standings import DAMAGED
from runtime.cli.text import one_line, shortened
from runtime.job.stops import JobStatus

RESULT_CHARS = 100
"""Characters of a result or a reason in a line for people."""

COLUMNS = tuple(field.name for field in fields(ResultRow) if field.name != "damaged")
"""The columns of a table, in their order."""

_NUMBERS = {"turns": "int64", "tokens": "int64", "retries": "int64"} | dict.fromkeys(
    ("cost_usd", "seconds", "score"), "float64"
)
"""The columns that are no text, by the names of their types in Arrow."""


class Form(Protocol):
    """Takes the rows of a batch in their order."""

    def row(self, row: ResultRow) -> None:
        """The next row."""
        ...

    def end(self) -> None:
        """There are no more."""
        ...


def document(row: ResultRow) -> dict[str, Any]:
    """A row as JSON."""
    return {**asdict(row), "damaged": list(row.damaged)}


def flat(row: ResultRow) -> dict[str, Any]:
    """A row as the cells of a table: the result and the patch as JSON in text."""
    cells: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
    return {**cells, **{name: _cell(cells[name]) for name in ("result", "patch")}}


def _cell(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


class JsonArray:
    """One JSON array, a row at a time."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rows = 0

    def row(self, row: ResultRow) -> None:
        """An item."""
        text = json.dumps(document(row), indent=2).replace("\n", "\n  ")
        self._write(f"{',' if self._rows else '['}\n  {text}")
        self._rows += 1

    def end(self) -> None:
        """The bracket."""
        self._write("\n]\n" if self._rows else "[]\n")


class JsonLines:
    """A JSON object a line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def row(self, row: ResultRow) -> None:
        """A line."""
        self._write(json.dumps(document(row)) + "\n")

    def end(self) -> None:
        """Nothing."""


class Csv:
    """Comma-separated values with a head, as RFC 4180 has them but for the ends of lines."""

    def __init__(self, write: Callable[[str], None]) -> None:
        class Writer:
            def write(self, text: str) -> None:
                write(text)

        self._csv = csv.DictWriter(Writer(), COLUMNS, lineterminator="\n")
        self._csv.writeheader()

    def row(self, row: ResultRow) -> None:
        """A line, or more where a cell has line ends."""
        self._csv.writerow(flat(row))

    def end(self) -> None:
        """Nothing."""


class _Held(io.RawIOBase):
    """A file whose first error waits until all is given: one raised in Arrow is a panic there."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """See ``RawIOBase``: all of it, or nothing for the file and all the same for Arrow."""
        try:
            if self.error is None:
                self._file.write(data)
        except OSError as error:
            self.error = error
        return len(data)

    def flush(self) -> None:
        """What is given is flushed by whoever closes the file."""


class Parquet:
    """A Parquet file. Rows go through a file of JSON lines, from which Arrow takes them in
    portions.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lines = tempfile.TemporaryFile()  # noqa: SIM115 - ``end`` closes it

    def row(self, row: ResultRow) -> None:
        """A row."""
        self._lines.write(json.dumps(flat(row)).encode() + b"\n")

    def end(self) -> None:
        """Writes the file."""
        from arro3.core import DataType, Field, Schema
        from arro3.io import read_json, write_parquet

        def column(name: str) -> Field:
            kind = getattr(DataType, _NUMBERS.get(name, "utf8"))
            return Field(name, kind(), nullable=name not in ("batch", "id", "status"))

        with self._lines as lines:
            lines.seek(0)
            read = read_json(lines, Schema([column(name) for name in COLUMNS]), batch_size=512)
            held = _Held(self._file)
            write_parquet(read, cast("IO[bytes]", held), compression="zstd(3)")
        if held.error is not None:
            raise held.error


class Lines:
    """A line a job for people, and one that sums up."""

    def __init__(self, write: Callable[[str], None], ids: list[str]) -> None:
        self._write = write
        self._width = max(map(len, ids), default=0)
        self._counts: dict[str, int] = {}
        self._tokens, self._cost = 0, 0.0
        self._scores: list[float] = []

    def row(self, row: ResultRow) -> None:
        """A line."""
        self._counts[row.status] = self._counts.get(row.status, 0) + 1
        self._tokens, self._cost = self._tokens + row.tokens, self._cost + row.cost_usd
        if row.score is not None:
            self._scores.append(row.score)
        self._write(f"{row.id:<{self._width}}  {_line(row)}".rstrip() + "\n")

    def end(self) -> None:
        """How many stand how, what they cost, and their mean score."""
        counts = ", ".join(f"{count:,} {status}" for status, count in self._counts.items())
        mean = ""
        if scored := len(self._scores):
            mean = f", mean score {sum(self._scores) / scored:.4g} of {scored:,}"
        self._write(f"{counts}; {self._tokens:,} tokens, ${self._cost:.4f}{mean}\n")


def _line(row: ResultRow) -> str:
    seconds = f"{row.seconds:,.1f} s" if row.seconds is not None else ""
    more = []
    if row.retries:
        more.append(counted(row.retries, "retry", "retries"))
    if row.score is not None:
        more.append(f"score {row.score:g}")
    if row.remarks:
        more.append(shortened(one_line(row.remarks), RESULT_CHARS))
    if row.status == DAMAGED or row.damaged:
        more.append(
            f"{counted(len(row.damaged), 'object')} cannot be read: run 'holdfast verify"
            f" {row.batch}/{row.id}'"
        )
    if row.reason and row.status != JobStatus.SUCCEEDED:
        more.append(shortened(one_line(row.reason), RESULT_CHARS))
    elif row.result is not None:
        told = json.dumps(row.result, ensure_ascii=False)
        more.append(shortened(one_line(told), RESULT_CHARS))
    return (
        f"{row.status:<10}  {row.turns:>4} {'turn ' if row.turns == 1 else 'turns'} "
        f" {row.tokens:>11,} tokens  {f'${row.cost_usd:.4f}':>9}  {seconds:>10}  {'; '.join(more)}"
    )
