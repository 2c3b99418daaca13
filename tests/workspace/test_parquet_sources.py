"""Parquet files at level 1: columns, types, first values and rows; whatever the file is, in bounded
time and memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from arro3.core import Array, DataType, Table
from arro3.io import write_parquet

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.base.redaction.rules import Redaction
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus


def read(
    root: Path, path: str, lod: int = 1, tokens: int = 500, redact: Redaction | None = None
) -> ReadResult:
    """A view's reading."""
    request = ReadRequest(obj_id="view-1", path=path, tokens=tokens, lod=lod)
    batch = ReadBatch(
        workspace=str(root),
        requests=(request,),
        encoding="cl100k_base",
        redact=redact or Redaction(),
    )
    (result,) = WorkspaceActivities().read_sources(batch).results
    return result


def people(path: Path, rows: int = 4) -> None:
    """A small table."""
    table = Table.from_pydict(
        {
            "id": Array(list(range(rows)), DataType.int64()),
            "name": Array(
                [None if n == 1 else f"name\n{n}" for n in range(rows)], DataType.string()
            ),
        }
    )
    write_parquet(table, path, compression="zstd(3)")


def test_the_columns_with_their_first_values_and_the_rows(tmp_path: Path) -> None:
    """Values stand on one line, and one that is missing is told."""
    people(tmp_path / "people.parquet")
    result = read(tmp_path, "people.parquet")
    assert result.status is ReadStatus.OK
    assert result.text.splitlines() == [
        "0: 2 columns, 4 rows",
        "0:   id: Int64, e.g. 0, 1, 2",
        "0:   name: Utf8, e.g. name 0, (empty), name 2",
    ]


def test_a_table_without_rows_has_columns(tmp_path: Path) -> None:
    """And no examples."""
    people(tmp_path / "people.pq", rows=0)
    assert read(tmp_path, "people.pq").text.splitlines()[:2] == [
        "0: 2 columns, 0 rows",
        "0:   id: Int64",
    ]


def test_many_rows_are_not_all_counted(tmp_path: Path) -> None:
    """Counting is reading."""
    people(tmp_path / "people.parquet", rows=100_001)
    assert (
        read(tmp_path, "people.parquet").text.splitlines()[0]
        == "0: 2 columns, more than 100,000 rows"
    )


def test_the_outline_gives_way_to_the_budget(tmp_path: Path) -> None:
    """As that of any source does."""
    names = {f"column_{n}": Array([n], DataType.int64()) for n in range(600)}
    write_parquet(Table.from_pydict(names), tmp_path / "wide.parquet")
    result = read(tmp_path, "wide.parquet", tokens=60)
    assert result.tokens <= 60
    assert result.truncated
    assert "600 columns, 1 rows" in result.text


def test_secrets_in_values_are_masked(tmp_path: Path) -> None:
    """Before a value is cut."""
    values = Array(["x" * 40 + " hunter22secret " + "y" * 40], DataType.string())
    write_parquet(Table.from_pydict({"note": values}), tmp_path / "secret.parquet")
    text = read(tmp_path, "secret.parquet", redact=Redaction(patterns=("hunter22secret",))).text
    assert "hunter" not in text


@pytest.mark.parametrize("damage", ["cut", "footer", "middle", "empty", "text", "magic"])
def test_a_damaged_file_says_that_it_cannot_be_read(tmp_path: Path, damage: str) -> None:
    """Whatever the library makes of it: an error, a panic, or rows that cannot be counted."""
    people(tmp_path / "whole.parquet", rows=2_000)
    data = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(
        {
            "cut": data[: len(data) // 2],
            "footer": data[:-40] + b"\xff" * 32 + data[-8:],
            "middle": data[:40] + b"\xff" * 200 + data[240:],
            "empty": b"",
            "text": b"id,name\n1,x\n",
            "magic": b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1",
        }[damage]
    )
    result = read(tmp_path, "bad.parquet")
    assert result.status is ReadStatus.OK
    assert (
        result.text.startswith("0: cannot be read as Parquet: ")
        or "rows that cannot be counted" in result.text
    )


@pytest.mark.slow
def test_what_unpacks_to_more_than_is_allowed_is_given_up(tmp_path: Path) -> None:
    """A value of 300 MB, which is small as a file, is never more than the reading process's
    trouble.
    """
    half = "0" * 300_000_000
    write_parquet(
        Table.from_pydict({"bomb": Array([half], DataType.string())}),
        tmp_path / "bomb.parquet",
        compression="zstd(3)",
    )
    del half
    assert (tmp_path / "bomb.parquet").stat().st_size < 1_000_000
    result = read(tmp_path, "bomb.parquet")
    assert result.status is ReadStatus.OK
    assert result.text.startswith(("0: cannot be read as Parquet: ", "0: 1 columns, "))
    assert result.tokens <= 500


def test_a_file_that_is_very_large_is_read_from_its_end(tmp_path: Path) -> None:
    """Of 5 GB, the end tells that it is no such file."""
    path = tmp_path / "sparse.parquet"
    path.write_bytes(b"PAR1")
    os.truncate(path, 5 * 1024**3)
    assert read(tmp_path, "sparse.parquet").text.startswith("0: cannot be read as Parquet: ")


def test_level_0_says_that_it_is_binary(tmp_path: Path) -> None:
    """There are no lines to show."""
    people(tmp_path / "people.parquet")
    assert "binary" in read(tmp_path, "people.parquet", lod=0).text


NARROW = """
import ctypes, resource, sys
# What root may do in spite of a hard limit (PR_CAPBSET_DROP, CAP_SYS_RESOURCE), from exec on.
ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
import os
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
"""
READ = """
import sys
from runtime.sources.parquet import parquet_outline
with open(sys.argv[1], "rb") as file:
    print(parquet_outline(file.fileno(), lambda text: text)[0].text)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere root is bounded otherwise")
def test_a_worker_that_is_bounded_more_narrowly_reads_tables_too(tmp_path: Path) -> None:
    """As by ``ulimit -v``: a hard limit is raised by nobody but root."""
    people(tmp_path / "people.parquet")
    done = subprocess.run(
        [sys.executable, "-c", NARROW, READ, str(tmp_path / "people.parquet")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2 columns, 4 rows\n"
