"""What a statement printed is read off the prompt that told of it."""

from __future__ import annotations

import pytest

from runtime.archive.printed import printed
from runtime.base.fences import unfenced
from runtime.interpreter.executions import ExceptionInfo, Execution, ExecutionStatus
from runtime.job.results import execution_text

RAISED = ExceptionInfo(type="ValueError", message="no", trace_summary="Traceback:\nValueError: no")


@pytest.mark.parametrize("exception", [None, RAISED, ExceptionInfo(type="E", message="m")])
@pytest.mark.parametrize("stderr", ["", "no\n", "no\n\n\n", "stderr:\nno"])
@pytest.mark.parametrize(
    "stdout",
    ["", "\n", "\n" * 9, "one\ntwo", "one\n\n", "one\n\n\n\n\n", "a\nstderr:\nb\n", "\n\nx\n"],
)
def test_what_was_printed_comes_back(
    stdout: str, stderr: str, exception: ExceptionInfo | None
) -> None:
    """Whatever line ends a prompt trims, and whatever stands behind it there."""
    status = ExecutionStatus.OK if exception is None else ExecutionStatus.ERROR
    execution = Execution(
        execution_id="e1.1",
        statement_id="s1",
        started_at="",
        ended_at="",
        status=status,
        stdout=stdout,
        stderr=stderr,
        exception=exception,
    )
    said = unfenced(execution_text(execution, 1).partition("\n")[2])
    record = execution.archived()
    assert [printed(record, stream, [said]) for stream in ("stdout", "stderr")] == [stdout, stderr]
    lost = [printed(record, stream, ["else"]) for stream in ("stdout", "stderr")]
    assert lost == [None if stream else "" for stream in (stdout, stderr)]


def test_an_end_has_it_whole() -> None:
    """No prompt came after it."""
    assert printed({"stdout": "one\n"}, "stdout") == "one\n"
    assert printed(None, "stdout") == ""
