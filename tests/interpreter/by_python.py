"""What statements are compared with: the Python that the tests run in."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from plain_loop import PlainLoop, statements


def printed(source: str) -> str:
    """What a source prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "<test>", "exec"), {})
    return out.getvalue()


def assert_prints_the_same(source: str, workspace: Path) -> None:
    """A source prints as a statement, live and replayed, what it prints here."""
    expected = printed(source)
    execution = PlainLoop(workspace, statements(source)).run().replayed().executions[0]
    assert execution.exception is None
    assert execution.stdout == expected
