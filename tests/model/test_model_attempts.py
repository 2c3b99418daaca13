"""What failed attempts cost, how many there are, and when they have used up what a job had left."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from model_calls import RUN, START, Job, anthropic_server, attempt, model_at, openai_server, run
from temporalio.exceptions import ApplicationError

from activities._failed_attempts import FailedAttempts
from activities._under_way import break_off
from activities._worst_case import LEAST_REPLY
from activities.contracts import Left, TurnCall, TurnReply
from runtime.archive.findings import Severity
from runtime.archive.verify import verify_job
from runtime.base.spec.models import Retry
from runtime.base.values import Failed, Usage
from tests.eventually import SECONDS, eventually

pytestmark = pytest.mark.usefixtures("litellm")

PROMPT = sum(segment.tokens for segment in START)
TEXT = "A reply of some length, so that there is a middle. " * 4
USAGE = {"prompt_tokens": 150_000, "completion_tokens": 10, "total_tokens": 150_010}
BROKEN = {"type": "server_error", "message": "Broke", "usage": USAGE}
REPORTING = {"text": TEXT, "error_after": 0, "error": BROKEN, "times": 99}
"""A stream that ends in an error, which states what was used."""
OOPS = {"fail": {"status": 500, "message": "Oops"}, "times": 99}
PLENTY = Left(tokens=10**9, usd=10**6, seconds=10**6)


async def tries(job: Job, number: int, **fields: Any) -> list[ApplicationError]:
    """The errors of so many attempts at the job's next turn."""
    return [await failed_try(job, n, **fields) for n in range(1, number + 1)]


async def failed_try(job: Job, number: int, **fields: Any) -> ApplicationError:
    """The error of attempt ``number``."""
    with pytest.raises(ApplicationError) as raised:
        await one_try(job, number, **fields)
    return raised.value


async def one_try(job: Job, number: int, **fields: Any) -> TurnReply:
    """Attempt ``number`` at the job's next turn."""
    call: TurnCall = job.call().model_copy(update={"left": PLENTY, **fields})
    return await run(job.store, call, attempt(number))


def told(error: ApplicationError) -> Failed:
    """What an error says was spent."""
    return Failed.model_validate(error.details[0])


async def test_reported_usage_of_failed_attempts_is_booked() -> None:
    """The reply tells of all attempts before it, at the model's price; so does its step, also to a
    retry that finds it.
    """
    async with openai_server(
        lambda _m, n: REPORTING if n < 4 else {"text": TEXT}
    ).serving() as server:
        job = Job(model_at(server))
        errors = await tries(job, 3)
        reply = await one_try(job, 4)
        again = await one_try(job, 5)
    one = Usage(prompt=150_000, completion=10)
    assert [told(error).attempts for error in errors] == [1, 2, 3]
    assert [told(error).usage for error in errors] == [one, one + one, one + one + one]
    dollars = 150_000 * 2.5e-6 + 10 * 1e-5  # gpt-4o
    assert [told(error).cost_usd for error in errors] == pytest.approx(
        [dollars, 2 * dollars, 3 * dollars]
    )
    assert (reply.failed.attempts, reply.failed.usage) == (3, one + one + one)
    assert again.failed == reply.failed
    step = job.archive.find_step(RUN, 1)
    assert step is not None
    assert step.failed_attempts == reply.failed
    assert [found for found in verify_job(job.archive) if found.severity is Severity.DAMAGE] == []


@pytest.mark.parametrize("streams", [True, False])
async def test_an_error_response_that_states_usage_is_booked(streams: bool) -> None:
    """Where a gateway was paid for nothing, it is known."""

    class Honest(type(openai_server(lambda _m, _n: "").protocol)):  # type: ignore[misc]
        def error(self, kind: str, message: str) -> dict[str, Any]:
            return {"error": {"message": message, "type": kind}, "usage": USAGE}

    server = openai_server(lambda _m, _n: OOPS)
    server.protocol = Honest()
    async with server.serving():
        error = await failed_try(Job(model_at(server, stream=streams)), 1)
    assert told(error).usage == Usage(prompt=150_000, completion=10)


async def test_a_stream_that_broke_off_reports_what_it_has() -> None:
    """Anthropic's streams begin with the prompt's tokens, and those of its cache beside them; of
    the reply, what came is counted.
    """
    usage = {
        "input_tokens": 400,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 7,
        "output_tokens": 1,
    }
    broken = {"text": TEXT, "usage": usage, "break_after": 50}
    async with anthropic_server(lambda _m, _n: broken).serving() as server:
        error = await failed_try(Job(model_at(server)), 1)
    booked = told(error).usage
    assert booked == Usage(
        prompt=497, completion=booked.completion, cache_read=90, cache_write=7, reported=False
    )
    assert 5 < booked.completion < 15
    assert told(error).cost_usd > 0


@pytest.mark.parametrize(
    ("reply", "completion"),
    [
        ({"text": TEXT, "break_after": 60, "times": 99}, 15),
        ({"hang": True, "times": 99}, 0),
        ({"fail": {"status": 504, "message": "The model took too long"}, "times": 99}, 0),
    ],
    ids=["broken", "silent", "gateway timeout"],
)
async def test_what_nobody_reports_is_an_estimate(reply: dict[str, Any], completion: int) -> None:
    """The request was sent, so its prompt counts, with what came of the reply; and it is called an
    estimate.
    """
    limits = {"first_byte": 0.3} if "hang" in reply else {}
    async with openai_server(lambda _m, _n: reply).serving() as server:
        error = await failed_try(Job(model_at(server, **limits)), 1)
    spent = told(error)
    assert spent.usage == Usage(prompt=PROMPT, completion=completion, reported=False)
    assert spent.cost_usd == pytest.approx(PROMPT * 2.5e-6 + completion * 1e-5)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
async def test_a_refusal_costs_nothing(status: int) -> None:
    """Providers take no money for them, and a job that is limited in its rate for an hour must not
    starve of estimates.
    """
    refused = {"fail": {"status": status, "message": "No"}, "times": 99}
    async with openai_server(lambda _m, _n: refused).serving() as server:
        error = await failed_try(Job(model_at(server)), 1)
    spent = told(error)
    assert (spent.attempts, spent.usage, spent.cost_usd) == (1, Usage(), 0.0)


async def test_what_never_left_costs_nothing() -> None:
    """No connection came about."""
    async with openai_server(lambda _m, _n: "").serving() as server:
        model = model_at(server)
    spent = told(await failed_try(Job(model), 1))
    assert (spent.attempts, spent.usage) == (1, Usage())


async def test_an_attempt_that_was_killed_is_an_estimate() -> None:
    """Its request is archived, and neither a reply nor a failure: the next attempt counts it,
    exactly once.
    """
    arrived, loop = asyncio.Event(), asyncio.get_running_loop()

    def respond(_messages: Any, number: int) -> Any:
        loop.call_soon_threadsafe(arrived.set)
        return {"hang": True} if number == 1 else OOPS if number == 2 else {"text": TEXT}

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server))
        dying = asyncio.create_task(one_try(job, 1))
        await arrived.wait()
        dying.cancel()
        await asyncio.wait({dying})
        error = await failed_try(job, 2)
        reply = await one_try(job, 3)
    killed = Usage(prompt=PROMPT, reported=False)
    assert (told(error).attempts, told(error).usage) == (2, killed)
    assert (reply.failed.attempts, reply.failed.usage) == (2, killed)


@pytest.mark.parametrize("cut", ["cancelled", "broken off"])
async def test_a_call_that_is_cut_is_archived_as_an_estimate(cut: str) -> None:
    """With what had come of its reply; a later attempt counts it once, and 'retry' does not."""
    async with openai_server(
        lambda _m, n: {"text": TEXT, "hang_after": 60} if n == 1 else {"text": TEXT}
    ).serving() as server:
        job, environment, arrived = Job(model_at(server)), attempt(1), asyncio.Event()
        environment.on_heartbeat = lambda beat: arrived.set() if beat["bytes"] else None
        call = asyncio.ensure_future(run(job.store, job.call(), environment))
        await eventually(arrived.is_set, "a part of the reply")
        if cut == "cancelled":
            environment.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            await break_off(RUN, environment.info.activity_id)
            with pytest.raises(ApplicationError, match="broken off") as raised:
                await call
            assert raised.value.type == "CallCut"
        [archived] = job.archive.attempts(RUN, 1)
        kept = job.archive.failure(archived.key)
        again = await one_try(job, 2, retry=Retry(attempts=1))
    assert kept is not None
    assert (kept.error_type, kept.spent.attempts) == ("CallCut", 1)
    estimate = Usage(prompt=PROMPT, completion=15, reported=False)
    assert kept.spent.usage == again.failed.usage == estimate
    assert kept.spent.cost_usd == pytest.approx(PROMPT * 2.5e-6 + 15 * 1e-5)
    assert [found for found in verify_job(job.archive) if found.severity is Severity.DAMAGE] == []


async def test_a_call_that_is_not_under_way_is_not_broken_off() -> None:
    """Another process makes it, or nobody does: there is nothing to wait for."""
    await asyncio.wait_for(break_off(RUN, "turn-1"), SECONDS)


async def test_spent_attempts_end_the_call() -> None:
    """As soon as they have used up what was left, with what they used and the last one's words."""
    async with openai_server(lambda _m, _n: REPORTING).serving() as server:
        job = Job(model_at(server))
        left = Left(tokens=10**9, usd=1.0, seconds=10**6)
        first, second, third = await tries(job, 3, left=left)
        asked = len(server.exchanges)
    assert [first.type, second.type, third.type] == ["ServerError", "ServerError", "BudgetSpent"]
    assert third.non_retryable
    assert third.message.startswith("3 failed attempts used 450,030 tokens and $1.1253")
    assert third.message.endswith("; the last: ServerError: Broke")
    assert told(third).attempts == asked == 3


def test_a_wait_that_is_not_waited_for_is_told_as_that() -> None:
    """A provider asks for longer than the job has: nothing took that time."""
    day, last = 86_400.0, "RateLimitError: Later (HTTP 429)"
    one = FailedAttempts().more(Failed(attempts=1, seconds=day + 0.2), last)
    assert one.line(day) == (
        "1 failed attempt used 0 tokens and $0.0000, and another was to follow after 1d; the last:"
        f" {last}"
    )
    assert "$0.0000, and the provider asks to wait 1d; the last" in one.line(day, asked=True)
    two = one.more(Failed(attempts=1, seconds=62.0), last)
    assert two.line(2.0).startswith(
        "2 failed attempts used 0 tokens and $0.0000 within 1d1m, and another was to follow after 2s"
    )
    assert "within 1d1m2s; the last" in two.line()


async def test_the_budget_is_checked_before_an_attempt() -> None:
    """What a killed attempt may have cost counts too: the next one is not made."""
    arrived, loop = asyncio.Event(), asyncio.get_running_loop()

    def respond(_messages: Any, _number: int) -> Any:
        loop.call_soon_threadsafe(arrived.set)
        return {"hang": True}

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server))
        dying = asyncio.create_task(one_try(job, 1))
        await arrived.wait()
        dying.cancel()
        await asyncio.wait({dying})
        left = Left(tokens=PROMPT + LEAST_REPLY, usd=1.0, seconds=10**6)
        error = await failed_try(job, 2, left=left)
        asked = len(server.exchanges)
    assert (error.type, error.non_retryable, asked) == ("BudgetShort", True, 1)
    assert error.message == (
        f"a prompt of {PROMPT} tokens and a reply of {LEAST_REPLY} would be more than the"
        f" {LEAST_REPLY} tokens left"
    )


async def test_attempts_are_bounded() -> None:
    """The last one says how many there were, and why it failed."""
    async with openai_server(lambda _m, _n: OOPS).serving() as server:
        errors = await tries(Job(model_at(server)), 3, retry=Retry(attempts=3))
    assert [error.non_retryable for error in errors] == [False, False, True]
    assert (errors[2].type, errors[2].message) == (
        "ServerError",
        "3 attempts failed, as many as 'retry' allows; the last: Oops (HTTP 500)",
    )


async def test_a_key_that_is_refused_is_tried_three_times() -> None:
    """Another worker may have a newer one; 'retry' may allow fewer."""
    refused = {"fail": {"status": 401, "message": "No such key"}, "times": 99}
    async with openai_server(lambda _m, _n: refused).serving() as server:
        errors = await tries(Job(model_at(server)), 3)
        few = await tries(Job(model_at(server)), 2, retry=Retry(attempts=2))
    assert [error.non_retryable for error in errors] == [False, False, True]
    assert (errors[2].type, errors[2].message) == (
        "AuthenticationError",
        "3 attempts failed, and with a key that is refused no more than 3 are made; the last:"
        " No such key (HTTP 401)",
    )
    assert few[1].message.startswith("2 attempts failed, as many as 'retry' allows")


async def test_attempts_with_earlier_slices_count() -> None:
    """Their number, and the waits, which go on growing."""
    tried, retry = Failed(attempts=7, seconds=100.0), Retry(attempts=9)
    async with openai_server(lambda _m, _n: OOPS).serving() as server:
        job = Job(model_at(server))
        errors = await tries(job, 2, retry=retry, tried=tried)
        late = await failed_try(
            Job(model_at(server)), 1, retry=Retry(time=110), tried=Failed(attempts=3, seconds=105)
        )
    assert errors[0].next_retry_delay == timedelta(seconds=128)
    assert errors[1].message.startswith("9 attempts failed, as many as 'retry' allows")
    assert re.match(r"4 attempts failed in 1m\d\ds, and another after 8s", late.message)


async def test_attempts_are_bounded_in_time() -> None:
    """A wait that the provider asks for counts before it is waited."""
    late = {"fail": {"status": 429, "message": "Slow down", "retry_after": 5000}, "times": 99}
    async with openai_server(lambda _m, _n: late).serving() as server:
        errors = await tries(Job(model_at(server)), 2, retry=Retry(time=7200))
    assert [error.non_retryable for error in errors] == [False, True]
    assert (
        "would be later than 'retry' allows (2h); the last: Slow down (HTTP 429)"
        in errors[1].message
    )


async def test_a_wait_of_nothing_is_temporals_own_and_counts() -> None:
    """Temporal takes a delay of no time for none, and waits as it would have."""
    soon = {"fail": {"status": 429, "message": "Slow down", "retry_after": 0}, "times": 99}
    async with openai_server(lambda _m, _n: soon).serving() as server:
        errors = await tries(Job(model_at(server)), 3, retry=Retry(time=5))
    assert [error.next_retry_delay for error in errors] == [None] * 3
    assert [error.non_retryable for error in errors] == [False, False, True]
    assert re.match(
        r"3 attempts failed in 3s, and another after 4s would be later than 'retry' allows \(5s\)",
        errors[2].message,
    )


async def test_who_asks_to_wait_is_told() -> None:
    """Where a job has less time than its provider asks it to wait."""
    late = {"fail": {"status": 429, "message": "Slow down", "retry_after": 5000}, "times": 99}
    left = Left(tokens=10**9, usd=1.0, seconds=600)
    async with openai_server(lambda _m, _n: late).serving() as server:
        error = await failed_try(Job(model_at(server)), 1, left=left)
    assert (error.type, error.next_retry_delay) == ("BudgetSpent", timedelta(seconds=5000))
    assert ", and the provider asks to wait 1h23m20s; the last: RateLimitError" in error.message


async def test_waits_grow_with_the_failures() -> None:
    """Up to five minutes; Temporal's own waits, of a minute at most, hold for the first and after
    crashes.
    """
    async with openai_server(lambda _m, _n: OOPS).serving() as server:
        errors = await tries(Job(model_at(server)), 11)
    minutes = [
        None if error.next_retry_delay is None else error.next_retry_delay for error in errors
    ]
    assert minutes[:6] == [None] * 6
    assert minutes[6:] == [timedelta(seconds=n) for n in (64, 128, 256, 300, 300)]
