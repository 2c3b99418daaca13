"""Why a reply ended, in its provider's own word: litellm makes ``stop`` of those that it does not
know.
"""

from __future__ import annotations

import pytest
from model_calls import (
    RUN,
    STREAMING,
    Job,
    Make,
    anthropic_server,
    model_at,
    openai_server,
)
from temporalio.exceptions import ApplicationError

from activities._answer import failed_by
from runtime.projection.replies import parse_reply

pytestmark = pytest.mark.usefixtures("litellm")

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@STREAMING
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (anthropic_server, "model_context_window_exceeded"),
        (openai_server, "model_length"),
    ],
    ids=["anthropic", "openai"],
)
async def test_a_reply_that_had_no_room_is_told_as_one(
    make: Make, reason: str, stream: bool
) -> None:
    """What was to follow is missing, so nothing of it is executed."""
    said = {"text": "First ", "code": "x = 1", "finish_reason": reason}
    async with make(lambda _m, _n: said).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    # Later releases of litellm know some of the words.
    assert reply.text == "First "
    assert reply.finish_reason in {reason, "length"}
    parsed = parse_reply(reply.text, reply.tool_calls, reply.finish_reason, None, "tool")
    assert parsed.statement is None
    assert "cut off by the token limit" in (parsed.problem or "")


@STREAMING
@pytest.mark.parametrize("reason", ["error", "network_error", "abort", "ERROR"])
async def test_a_reply_that_failed_at_its_provider_is_a_failed_attempt(
    reason: str, stream: bool
) -> None:
    """What came of it is archived and booked, and the model is asked again: it was executed, or
    the model was told that it had written no statement.
    """
    said = {"text": "I see", "finish_reason": reason, "usage": USAGE}
    async with openai_server(lambda _m, _n: said).serving() as server:
        job = Job(model_at(server, stream=stream))
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        (exchange,) = server.exchanges
    words = f"the reply failed at its provider (it ended by {reason!r})"
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        "StreamBroken",
        False,
        words,
    )
    (attempt,) = job.archive.attempts(RUN, 1)
    failure = job.archive.failure(attempt.key)
    assert failure is not None
    # Some of these words litellm takes for the stream's end, behind which the usage would come.
    assert failure.spent.usage.total > 0
    assert exchange.response.startswith(job.archive.failed_response(attempt.key))


@STREAMING
async def test_a_model_that_speaks_of_reasons_ends_by_none(stream: bool) -> None:
    """What stands in its text, or in what it would execute, is no field of the reply."""
    text = '{"finish_reason": "error", "stop_reason": "model_length"}'
    said = {"text": text, "code": text, "finish_reason": "stop"}
    for make in (openai_server, anthropic_server):
        async with make(lambda _m, _n: said).serving() as server:
            reply = await Job(model_at(server, stream=stream)).take_turn()
        assert reply.text == text
        assert reply.finish_reason in {"stop", "tool_calls"}


@pytest.mark.parametrize("behind", [0, 4_000, 4_080, 4_096, 100_000])
def test_the_last_reason_counts_wherever_it_stands(behind: int) -> None:
    """However much follows it."""
    chunk = b'data: {"choices": [{"delta": {}, "finish_reason": "%b"}]}\n\n'
    assert failed_by(chunk % b"stop" + chunk % b"error" + b" " * behind) == "error"
    assert failed_by(chunk % b"error" + chunk % b"stop" + b" " * behind) is None
