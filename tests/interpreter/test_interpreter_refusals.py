"""A statement that the type checker refused is refused again, or tried again later: never run
because time was short.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from plain_loop import Entry, Run

from runtime.interpreter import checker
from runtime.interpreter.run import Verdict
from runtime.interpreter.verdicts import Checked

SLOW = "x = 0\nwhile x == 0:\n" + "".join(
    f"    y{i} = x if x else 'a'\n    x = (y{i}, x)\n" for i in range(30)
)


def test_a_refusal_is_refused_again(run: Run) -> None:
    """In the same words."""
    loop = run("print('never', view(1))", "x = 1")
    assert loop.executions[0].exception is not None
    assert loop.executions[0].exception.type == "TypeCheckError"
    assert loop.again().run().executions == loop.executions


def test_a_refusal_without_time_to_repeat_it_fails_the_task(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay stops where a live statement would have run unchecked."""
    monkeypatch.setattr(checker, "REPLAY_SECONDS", 0.2)
    loop = run(SLOW)
    index = [entry.kind for entry in loop.history].index("verdict")
    refused = Entry("verdict", Verdict(digest="d", checked=Checked.REFUSED).model_dump_json())
    history = [*loop.history[:index], refused]
    with pytest.raises(checker.GaveUp, match="needs too much time"):
        replace(loop.again(), history=history).run()
