"""A key that a statement puts together is masked wherever it leaves the interpreter, alike on every
replay.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plain_loop import PlainLoop, statements

from runtime.interpreter.executions import ExecutionStatus

KEY = "sk-proj-0aA1bB2cC3dD4eE5fF6gG7hH8"
MADE = "key = 'sk-' + 'proj-0aA1bB2cC' + '3dD4eE5fF6gG7hH8'\n"
MASKED = "[masked:api-key]"


def search(query: str) -> str:
    """Answers with the question."""
    return query


def told(loop: PlainLoop) -> str:
    """All that the job holds, shows and records: prompts, events, executions, nodes and its end."""
    layouts = [[segment.model_dump(mode="json") for segment in layout] for layout in loop.layouts]
    executions = [execution.model_dump(mode="json") for execution in loop.executions]
    events = [event.model_dump(mode="json") for event in loop.job.log]
    return json.dumps([layouts, executions, events, loop.job.graph.dump(), repr(loop.stop)])


@pytest.mark.parametrize(
    "use",
    [
        "print(key)",
        "print({'a': [key]})",
        "key",
        "import sys\nprint(key, file=sys.stderr)",
        "raise ValueError('no such key: ' + key)",
        "n = note('the key is ' + key)",
        "n = note('x')\nn.SetText(key)\nn.Append(key)",
        "v = view('a.txt')\npin(v, reason=key)",
        "v = view('a.txt', pos='/' + key)",
        "v = view(key)",
        "open(key).read()",
        "print(search(key), search(query=key))",
        "x = {key: 1}",
    ],
)
def test_a_key_that_is_put_together_is_masked_where_it_leaves(workspace: Path, use: str) -> None:
    """In what is printed, raised, noted, asked and listed; the variable itself stays what it is."""
    (workspace / "a.txt").write_text("text\n")
    loop = (
        PlainLoop(workspace, statements(MADE + use, "print(len(key))"), tools=[search])
        .run()
        .replayed()
    )
    assert KEY not in told(loop) and "0aA1bB2cC3dD4" not in told(loop)
    assert (loop.executions[1].status, loop.executions[1].stdout) == (
        ExecutionStatus.OK,
        f"{len(KEY)}\n",
    )


def test_what_the_checker_computes_is_masked_where_it_is_recorded(workspace: Path) -> None:
    """A refusal's text stands in the history."""
    loop = PlainLoop(workspace, statements(MADE + "view('a.txt', lod=key)", "x = 1")).run()
    assert loop.executions[0].exception is not None
    assert MASKED in loop.executions[0].exception.message
    verdicts = [entry.value for entry in loop.history if entry.kind == "verdict"]
    assert MASKED in verdicts[0] and KEY not in verdicts[0]
    loop.replayed()


def test_a_result_is_masked_too(workspace: Path) -> None:
    """What finish is given is what a user and the archive get."""
    loop = PlainLoop(workspace, statements(MADE + "finish({'key': key, 'n': 1})")).run()
    assert loop.stop is not None and loop.stop.result == {"key": MASKED, "n": 1}
    assert KEY not in told(loop)
