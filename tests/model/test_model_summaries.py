"""How often a summary is asked for: by what the provider answers, whatever happens to the
workers.
"""

import asyncio
from typing import Any

import pytest
from model_calls import START, Job, attempt, model_at, openai_server
from temporalio.exceptions import ApplicationError

from activities.contracts import SummaryCall, TurnReply
from activities.model import ModelActivities
from runtime.base.spec.models import Retry
from runtime.base.values import JobKey
from runtime.history.condensers.request import SummaryForm
from runtime.projection.segments import Add, LayoutDelta
from workflows.limits import SUMMARY_ATTEMPTS, summary_retry

pytestmark = pytest.mark.usefixtures("litellm")


async def summarise(job: Job, number: int = 1) -> TurnReply:
    """Attempt ``number`` at a summary before the job's next turn."""
    call = SummaryCall(
        key=JobKey(batch="nightly", job=job.name),
        turn=job.turn,
        name="1.c1",
        layout=LayoutDelta(parts=tuple(Add(segment=segment) for segment in START)),
        prompt=SummaryForm.OWN_PROMPT,
        model=job.model,
        reset_event_id=4,
        retry=summary_retry(Retry()),
    )
    return await attempt(number).run(ModelActivities(job.store).summarise, call)


async def failure(job: Job, number: int) -> ApplicationError:
    """The error of attempt ``number``."""
    with pytest.raises(ApplicationError) as raised:
        await summarise(job, number)
    return raised.value


async def test_a_summary_is_given_up_after_bounded_failures() -> None:
    """A server that always fails ends the matter, with its own words; workers that died over it do
    not count.
    """
    hangs: list[dict[str, Any]] = [{"hang": True, "times": 99}] * SUMMARY_ATTEMPTS
    fails: list[dict[str, Any]] = [
        {"fail": {"status": 500, "message": "Oops"}, "times": 99}
    ] * SUMMARY_ATTEMPTS
    answers = [*hangs, *fails]
    arrived, loop = asyncio.Semaphore(0), asyncio.get_running_loop()

    def respond(_messages: Any, number: int) -> Any:
        loop.call_soon_threadsafe(arrived.release)
        return answers[number - 1]

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server))
        for number, _ in enumerate(hangs, 1):
            dying = asyncio.create_task(summarise(job, number))
            await arrived.acquire()
            dying.cancel()
            await asyncio.wait({dying})
        errors = [await failure(job, SUMMARY_ATTEMPTS + n) for n in range(1, SUMMARY_ATTEMPTS + 1)]
    assert {error.type for error in errors} == {"ServerError"}
    assert [error.message for error in errors[:-1]] == ["Oops (HTTP 500)"] * (SUMMARY_ATTEMPTS - 1)
    assert (
        errors[-1].message
        == "4 attempts failed, as many as 'retry' allows; the last: Oops (HTTP 500)"
    )
    assert [error.non_retryable for error in errors] == [False] * (SUMMARY_ATTEMPTS - 1) + [True]


async def test_a_summary_does_not_wait_for_hours() -> None:
    """A provider that asks for a long wait is not asked for the summary again; the job's own calls
    do wait longer.
    """
    soon = {"fail": {"status": 429, "message": "Slow down", "retry_after": 60}, "times": 99}
    late = {"fail": {"status": 429, "message": "Slow down", "retry_after": 5400}, "times": 99}
    async with openai_server(
        lambda _messages, number: soon if number == 1 else late
    ).serving() as server:
        job = Job(model_at(server))
        assert [(await failure(job, number)).non_retryable for number in (1, 2)] == [False, True]
        with pytest.raises(ApplicationError) as raised:
            await job.take_turn()
    assert not raised.value.non_retryable
