"""A statement that the type checker refused is refused again, or tried again later: never run
because time was short.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from plain_loop import Entry, Run

from runtime.interpreter import checker
from runtime.interpreter.executions import Execution, ExecutionStatus
from runtime.interpreter.run import Verdict, VerdictStatus
from runtime.interpreter.verdicts import KEPT, KILLED, Checked, InterpreterDrift, exception_of
from workflows.answers import Live

SLOW = "x = 0\nwhile x == 0:\n" + "".join(
    f"    y{i} = x if x else 'a'\n    x = (y{i}, x)\n" for i in range(30)
)


def test_a_refusal_is_refused_again(run: Run) -> None:
    """In the same words."""
    loop = run("print('never', view(1))", "x = 1")
    assert loop.executions[0].exception is not None
    assert loop.executions[0].exception.type == "TypeCheckError"
    assert loop.again().run().executions == loop.executions


def later(value: int) -> int:
    """A tool that the checker knows of from a later release on."""
    return value


def test_a_refusal_is_the_recorded_one_whatever_the_checker_says_now(run: Run) -> None:
    """The verdict has what the statement was told; one of a history of before has not, and the
    replay notices that the checker says something else.
    """
    loop = run("print(later(1))", "x = 1")
    known = replace(loop.again(), tools=[*loop.tools, later])
    assert known.run().executions == loop.executions
    verdicts = [entry for entry in loop.history if entry.kind == "verdict"]
    refused = Verdict.model_validate_json(verdicts[0].value)
    assert refused.refusal == loop.executions[0].exception
    before = Entry("verdict", refused.model_copy(update={"refusal": None}).model_dump_json())
    history = [before if entry is verdicts[0] else entry for entry in loop.history]
    assert replace(loop.again(), history=history).run().executions == loop.executions
    with pytest.raises(InterpreterDrift):
        replace(known.again(), history=history).run()


@pytest.mark.parametrize("source", ["print(later(1))", "x ="])
def test_an_archived_refusal_is_what_its_statement_is_told_again(run: Run, source: str) -> None:
    """The verdict that a frozen replay begins with has the text."""
    (refused, _) = run(source, "x = 1").executions[:2]
    assert foreseen(refused) == Verdict(checked=Checked.REFUSED, refusal=refused.exception)


@pytest.mark.parametrize("source", ["raise SyntaxError('x')", "open('a.txt')\nraise SyntaxError"])
def test_a_statement_that_ran_is_not_taken_for_a_refused_one(run: Run, source: str) -> None:
    """Though it raised what the parser raises."""
    assert foreseen(run(source, "x = 1").executions[0]) == Verdict(checked=Checked.REFUSED)


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(status=VerdictStatus.CRASHED),
        Verdict(status=VerdictStatus.CRASHED, detail=KILLED),
        Verdict(status=VerdictStatus.MEMORY, detail=KEPT),
        # As it printed too much, it ran on: nobody measures how long, once it is known.
        Verdict(status=VerdictStatus.OUTPUT),
    ],
)
def test_a_verdict_that_another_process_might_not_come_to_is_obeyed(
    run: Run, verdict: Verdict
) -> None:
    """A frozen replay finds no difference in a statement whose interpreter was killed when it was
    live; a statement that raises the same words did not end so.
    """
    told = exception_of(verdict)
    (execution,) = run("x = 1").executions[:1]
    ended = execution.model_copy(update={"exception": told, "status": ExecutionStatus.ERROR})
    assert foreseen(ended) == verdict
    raised = run(f"raise {told.type}({told.message!r})").executions[0]
    assert raised.exception is not None
    assert raised.exception.message == told.message
    assert foreseen(raised) == Verdict(checked=Checked.UNKNOWN)


def foreseen(execution: Execution) -> Verdict | None:
    """What a turn that executes again begins with, by its archived execution."""
    answers = Live()
    answers.execution = execution.archived()
    return answers.foreseen(0)


@pytest.mark.slow
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
