"""A small workspace, and a job that runs statements in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "job"))

from plain_loop import PlainLoop, Run, statements


def search(query: str, limit: int = 2) -> list[str]:
    """A tool that answers with its question."""
    return [f"{query} {number}" for number in range(limit)]


def take(value: Any) -> Any:
    """A tool that takes anything and gives it back."""
    return value


def fail(kind: str) -> None:
    """A tool that raises."""
    raise {"ValueError": ValueError, "KeyError": KeyError, "Odd": type("Odd", (Exception,), {})}[
        kind
    ]("no such thing")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two text files and a binary one."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "foo.py").write_text(
        "".join(f"def f{n}():\n    return {n}\n" for n in range(50))
    )
    (tmp_path / "a.txt").write_text("hello\nworld\n")
    (tmp_path / "raw.bin").write_bytes(b"\x00\xff\n")
    return tmp_path


@pytest.fixture
def run(workspace: Path) -> Run:
    """Runs statements to their end, and once more from the recorded history, which must come to the
    same.
    """

    def go(*sources: str, **options: Any) -> PlainLoop:
        options.setdefault("tools", [search, take, fail])
        return PlainLoop(workspace, statements(*sources), **options).run().replayed()

    return go
