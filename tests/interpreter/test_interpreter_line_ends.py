"""Files are read with the line ends that Python gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_python import assert_prints_the_same
from plain_loop import PlainLoop, statements

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

READ = """
import csv, json
from pathlib import Path
print([open("t.csv").read(), open("t.csv", newline="").read(), open("t.csv", newline=None).read()])
print(open("t.csv", encoding="utf-8", newline="").readlines(), open("t.csv", "r").readlines())
print([Path("t.csv").read_text(), Path("t.csv").read_text(encoding="utf-8")])
print([Path("t.csv").read_text("utf-8"), Path("t.csv").read_text(errors="replace")])
print([Path("t.csv").open(newline="").read(), Path("t.csv").open(encoding="latin-1").read()])
print([open("t.csv", errors="ignore").read(), open("t.csv", newline="\\n").read()])
with open("t.csv", newline="") as f:
    print(list(csv.DictReader(f)), f.closed, f.name)
with open("t.csv", newline="", encoding="utf-8") as f:
    rows = csv.reader(f)
    print(next(rows), list(rows))
print(f.closed, json.load(open("t.json", newline="")))
print(max(open("t.csv", newline=""), key=len), list(enumerate(open("t.csv", newline=""))))
print([x for x in iter(lambda f=open("t.json"): f.read(4), "")])
"""


def test_a_file_is_read_as_python_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``newline=""`` keeps line ends as they are, and an encoding changes none."""
    (tmp_path / "t.csv").write_bytes("a,b\r\n1,é\r\n".encode())
    (tmp_path / "t.json").write_text('{"a":\n 1}')
    monkeypatch.chdir(tmp_path)
    assert_prints_the_same(READ, tmp_path)


def test_an_end_that_is_none_is_refused(tmp_path: Path) -> None:
    """As Python refuses it."""
    (tmp_path / "t").write_text("a")
    execution = PlainLoop(tmp_path, statements("open('t', newline='a')")).run().executions[0]
    assert execution.exception is not None
    assert execution.exception.message == "illegal newline value: 'a'"


@pytest.mark.parametrize(
    "source", ["open('t', newline='')", "Path('t').read_text(encoding='utf-8')"]
)
def test_a_run_of_before_reads_what_it_read_then(source: str) -> None:
    """Its history has what came of it."""
    assert "_reads" not in lower(source, dialect=Dialect.WRITES).pieces
    assert "_reads" in lower(source).pieces
