"""What a job makes of odd replies: each is told to the model, in a prompt that every provider
takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_loop import Messages, PlainLoop, native

from runtime.base.fences import fenced
from runtime.base.values import ModelReply, ToolCall
from runtime.job.results import NOBODY_THERE
from runtime.job.stops import JobStatus, Stop


def replies(*given: str | ModelReply) -> Any:
    """A policy that gives these replies, then finishes."""
    rest = iter(given)
    return lambda _: next(rest, "finish('end')")


def run(workspace: Path, *given: str | ModelReply, **options: Any) -> PlainLoop:
    """Runs a job with these replies, and replays it."""
    return PlainLoop(workspace, replies(*given), options=options).run().replayed()


def roles(messages: Messages) -> list[str]:
    """Who speaks."""
    return [message["role"] for message in messages]


def last(messages: Messages) -> str:
    """The last message but for the budget line."""
    return str(messages[-1]["content"]).rpartition("\n\n[budget")[0]


def calls(*ids: str, code: str = '{"code": "x = 1"}') -> ModelReply:
    """A reply with native calls."""
    return ModelReply(
        tool_calls=tuple(ToolCall(id=i, name="python", arguments=code) for i in ids), tokens=5
    )


BAD = [
    pytest.param(ModelReply(), id="empty"),
    pytest.param(ModelReply(text="  \n"), id="blank"),
    pytest.param(
        ModelReply(thinking=({"type": "thinking", "thinking": "hm", "signature": "s"},)),
        id="thinking only",
    ),
    pytest.param(ModelReply(text="x = 1", finish_reason="length"), id="cut off"),
    pytest.param(ModelReply(text="I will not.", refusal="no"), id="refusal"),
    pytest.param(calls("a", "b"), id="two calls"),
    pytest.param(calls("a", "a"), id="two calls with one id"),
    pytest.param(calls("a", code="{"), id="broken arguments"),
    pytest.param(calls("a", code='{"code": "\\ud800"}'), id="lone surrogate"),
    pytest.param(calls("", "", ""), id="calls without ids"),
    pytest.param(ModelReply(text='<script type="text/x-python">x = 1'), id="open block"),
    pytest.param(
        ModelReply(
            text='<script type="text/x-python">x</script><script type="text/x-python">y</script>'
        ),
        id="two blocks",
    ),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_reply_is_told_and_the_job_goes_on(workspace: Path, bad: ModelReply) -> None:
    """Nothing is executed; the next prompt has a result for each call, each call an id of its own,
    no empty message.
    """
    loop = run(workspace, bad, "print('on')")
    assert [execution.stdout for execution in loop.executions] == ["on\n", ""]
    shown = loop.prompts[1]
    assert all(message["content"] or message.get("tool_calls") for message in shown)
    asked = [call["id"] for message in shown for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in shown if message["role"] == "tool"]
    assert asked == answered
    assert len(set(asked)) == len(asked) == len(bad.tool_calls)
    assert loop.stop is not None
    assert (loop.stop.status, loop.stop.result) == (JobStatus.SUCCEEDED, "end")


@pytest.mark.parametrize("bad", BAD)
def test_three_bad_replies_in_a_row_end_the_job(workspace: Path, bad: ModelReply) -> None:
    """As failed, with the last problem as the reason; a good one between starts the count anew."""
    loop = run(workspace, bad, bad, "x = 1", bad, bad, bad)
    assert loop.job.turn == 6
    assert loop.stop is not None
    assert loop.stop.status is JobStatus.FAILED
    assert loop.stop.reason.startswith("3 replies in a row could not be used; the last: ")


def test_a_text_alone_is_recorded_and_ends_nothing(workspace: Path) -> None:
    """The model is told that nobody answers, and goes on; a statement between starts the count
    anew.
    """
    hello = [ModelReply(text=f"Hello {n}", tokens=2) for n in range(5)]
    loop = run(workspace, *hello[:2], "x = 1", *hello[2:4])
    assert loop.stop is not None
    assert loop.stop.status is JobStatus.SUCCEEDED
    assert last(loop.prompts[1]) == NOBODY_THERE
    assert roles(loop.prompts[2]) == ["system", "user", "assistant", "user", "assistant", "user"]


def test_three_texts_in_a_row_end_the_job(workspace: Path) -> None:
    """As failed, and the reason says what the last one said."""
    loop = run(
        workspace,
        *[ModelReply(text=f" Hello {n}, is anybody there?\n", tokens=2) for n in range(5)],
    )
    assert loop.job.turn == 3
    reason = "3 replies in a row held no statement; the last: Hello 2, is anybody there?"
    assert loop.stop == Stop(JobStatus.FAILED, reason)


def test_texts_and_bad_replies_count_together(workspace: Path) -> None:
    """A model that alternates between them gets nowhere either."""
    loop = run(workspace, ModelReply(), ModelReply(text="Hm.", tokens=1), ModelReply())
    assert loop.stop is not None
    assert (loop.job.turn, loop.stop.status) == (3, JobStatus.FAILED)
    assert loop.stop.reason.startswith(
        "3 replies in a row could not be used; the last: Your reply was empty."
    )


def test_a_user_who_answers_makes_it_a_conversation(workspace: Path) -> None:
    """Texts before a message do not count."""
    texts = [ModelReply(text=f"Question {n}?", tokens=2) for n in range(4)]
    said = {3: ["Yes."], 5: ["No."]}
    loop = PlainLoop(workspace, replies(*texts), messages=said).run().replayed()
    assert loop.stop is not None
    assert (loop.job.turn, loop.stop.status) == (5, JobStatus.SUCCEEDED)


def test_text_beside_a_statement_is_kept_with_it(workspace: Path) -> None:
    """One assistant message has both, and thinking blocks come back unaltered."""
    thinking = ({"type": "thinking", "thinking": "hm", "signature": "s"},)
    reply = native("x = 1", 1, text="I set x.").model_copy(update={"thinking": thinking})
    message = run(workspace, reply).prompts[1][2]
    assert (message["content"], message["thinking_blocks"]) == ("I set x.", [thinking[0]])
    assert message["tool_calls"][0]["function"]["arguments"] == '{"code": "x = 1"}'


def test_ids_that_a_provider_uses_again_are_no_trouble(workspace: Path) -> None:
    """Every turn's call is ``call_0``: each has its own result."""
    loop = run(workspace, *[calls("call_0", code=f'{{"code": "print({n})"}}') for n in range(4)])
    results = [message["content"] for message in loop.prompts[-1] if message["role"] == "tool"]
    assert [result.split("\n")[2] for result in results] == ["0", "1", "2", "3"]


def test_the_script_form_has_no_tool_messages(workspace: Path) -> None:
    """A block is executed, and its result is a user message."""
    block = ModelReply(text='Now.\n<script type="text/x-python">\nprint(1)\n</script>', tokens=9)
    loop = run(workspace, block, form="script")
    assert roles(loop.prompts[1]) == ["system", "user", "assistant", "user"]
    assert last(loop.prompts[1]) == "[turn 1: ok]\n" + fenced("1")


def test_a_users_message_is_seen_at_the_next_turn(workspace: Path) -> None:
    """Behind the result of the statement before."""
    loop = (
        PlainLoop(workspace, replies("x = 1", "x = 2"), messages={2: ["Hurry.", "Please."]})
        .run()
        .replayed()
    )
    assert last(loop.prompts[1]) == "Hurry.\n\nPlease."
    assert roles(loop.prompts[1]) == ["system", "user", "assistant", "tool", "user"]
