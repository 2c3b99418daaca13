"""How the rate of an account follows its limit, what its calls use, and what its provider says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.rate_headers import tell
from runtime.base.spec.limits import Routes, fairness_key, limited_by
from runtime.base.spec.models import Limit
from runtime.server.rates import FIRST_TOKENS, Account
from runtime.worker import limited
from runtime.worker.limited import LimitedQueues, Metered
from runtime.worker.steering import LEAST_SHARE, Meter, seconds_in, steered
from tests.work import work

NOW = 1_800_000_000.0


def test_a_call_goes_by_the_queue_of_the_longest_pattern() -> None:
    """What matches none stays where it is."""
    routes = Routes(archive="a1", models=("*", "openai/*", "openai/gpt-5*"), tools=("t:search",))
    assert routes.model("openai/gpt-5-mini") == "model:openai/gpt-5*@a1"
    assert routes.model("openai/o3") == "model:openai/*@a1"
    assert Routes(archive="a1", models=("openai/*",)).model("anthropic/claude") is None
    assert (routes.tool("t:search"), routes.tool("t:find")) == ("tool:t:search@a1", None)
    assert [limited_by(queue) for queue in routes.queues] == [*routes.models, *routes.tools]


def test_a_fairness_key_is_one_that_temporal_takes() -> None:
    """Names of batches may be longer, and stay apart."""
    assert fairness_key("nightly") == "nightly"
    keys = {fairness_key(f"{'n' * 90}-{number}") for number in range(3)}
    assert len(keys) == 3
    assert {len(key.encode()) for key in keys} == {64}


@pytest.mark.parametrize(
    ("limit", "tokens", "rate"),
    [
        (Limit(requests_per_minute=600), 0, 10.0),
        (Limit(tokens_per_minute=600_000), 0, 10_000 / FIRST_TOKENS),
        (Limit(tokens_per_minute=600_000), 500.0, 20.0),
        (Limit(requests_per_minute=600, tokens_per_minute=600_000), 500.0, 10.0),
        (Limit(requests_per_minute=600, tokens_per_minute=600_000), 5_000.0, 2.0),
        (Limit(concurrent=4), 500.0, None),
    ],
)
def test_the_lesser_limit_counts(limit: Limit, tokens: float, rate: float | None) -> None:
    """Tokens a minute are calls a second by what a call uses."""
    assert Account(limit=limit, tokens=tokens).rate(NOW) == rate


def test_the_rate_follows_what_calls_use() -> None:
    """At first what the first calls used, later an average."""
    account = Account(limit=Limit(tokens_per_minute=60_000))
    meter = Meter()
    meter.used(1_000)
    meter.used(3_000)
    account = steered(account, meter, NOW)
    assert (account.tokens, account.rate(NOW)) == (2_000.0, 0.5)
    meter = Meter()
    meter.used(7_000)
    assert steered(account, meter, NOW).tokens == 3_000.0
    assert steered(account, Meter(), NOW) == account


def test_a_refusal_slows_the_whole_queue() -> None:
    """For as long as the provider says, and then for a while to a part of the rate, which rises."""
    account, meter = Account(limit=Limit(requests_per_minute=600)), Meter()
    meter.refuse(20.0)
    meter.refuse(None)
    slowed = steered(account, meter, NOW)
    assert (slowed.rate(NOW), slowed.until) == (0.05, NOW + 20)
    assert slowed.rate(NOW + 20) == pytest.approx(7.0)
    assert steered(slowed, Meter(), NOW + 10) == slowed
    risen = steered(slowed, Meter(), NOW + 20)
    assert risen.rate(NOW + 20) == pytest.approx(7.35)
    for _ in range(20):
        risen = steered(risen, Meter(), NOW + 60)
        slowed = steered(slowed, meter, NOW)
    assert risen.rate(NOW + 60) == 10.0
    assert slowed.share == LEAST_SHARE


def test_a_refusal_slows_a_queue_that_has_no_rate() -> None:
    """And lets it be as it was afterwards."""
    meter = Meter()
    meter.refuse(10.0)
    slowed = steered(Account(limit=Limit(concurrent=4)), meter, NOW)
    assert (slowed.rate(NOW + 9), slowed.rate(NOW + 10)) == (0.1, None)


@pytest.mark.parametrize(("told", "slowed"), [(599.0, 599.0), (3_600.0, 600.0)])
def test_a_queue_is_slow_for_ten_minutes_at_most(told: float, slowed: float) -> None:
    """Whatever a header tells: then the provider is asked again."""
    meter = Meter()
    meter.refuse(told)
    assert steered(Account(limit=Limit(concurrent=4)), meter, NOW).until == NOW + slowed


def test_the_longest_wait_counts_at_any_moment() -> None:
    """Rounding makes it no longer than counts."""
    meter = Meter()
    meter.refuse(3_600.0)
    now = NOW + 0.0625
    assert steered(Account(limit=Limit(concurrent=4)), meter, now).rate(now) == 0.001667


def test_a_clock_that_is_ahead_slows_nobody_else() -> None:
    """What it has written does not count once its time has come either; what is heard here does."""
    ahead, heard = Meter(), Meter()
    ahead.refuse(20.0)
    heard.refuse(10.0)
    written = steered(Account(limit=Limit(requests_per_minute=600)), ahead, NOW + 3_600)
    assert written.slowed_until(NOW + 3_600) == NOW + 3_620
    assert (written.slowed_until(NOW), written.rate(NOW)) == (None, pytest.approx(7.0))
    seen = steered(written, Meter(), NOW)
    assert (seen.until, seen.rate(NOW + 3_610)) == (0.0, pytest.approx(7.35))
    assert steered(written, heard, NOW).slowed_until(NOW) == NOW + 10


def test_a_clock_that_is_a_little_ahead_is_believed() -> None:
    """The longest wait that such a host has written counts within moments."""
    meter = Meter()
    meter.refuse(600.0)
    written = steered(Account(limit=Limit(concurrent=4)), meter, NOW + 2)
    seen = steered(written, Meter(), NOW)
    assert (seen.rate(NOW), seen.rate(NOW + 2)) == (None, 0.001667)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1h"}, 0.0),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:30Z",
            },
            30.0,
        ),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, 0.0),
    ],
    ids=["minutes", "milliseconds", "some left", "a time", "unreadable"],
)
def test_headers_say_when_there_is_more(headers: dict[str, str], seconds: float) -> None:
    """In the spellings of OpenAI's and Anthropic's APIs."""
    meter = Meter()
    meter.hear(headers, NOW)
    assert meter.quiet == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "seconds"), [("1h2m3.5s", 3723.5), ("2.5", 2.5), ("", 0.0)])
def test_the_spellings_of_a_time_to_come(text: str, seconds: float) -> None:
    """As headers tell it."""
    assert seconds_in(text, NOW) == seconds


def test_a_time_of_any_length_is_read_in_proportion_to_it() -> None:
    """Whoever answers a call writes the header, and its reading holds up all other calls."""
    small, large = (lambda size=size: seconds_in("1" * size + "x", NOW) for size in (1_000, 16_000))
    assert work(large) < 64 * (work(small) + 0.001)


def test_what_the_server_keeps_is_read_back() -> None:
    """The words that say why a queue has its rate are its state."""
    account = Account(limit=Limit(requests_per_minute=60, concurrent=3), tokens=1_234.5, share=0.7)
    assert Account.model_validate_json(account.model_dump_json(exclude_defaults=True)) == account


@pytest.mark.parametrize(("headers", "quiet"), [({"Retry-After": "17"}, 17.0), ({}, 5.0)], ids=str)
async def test_a_refused_calls_own_wait_is_not_what_its_provider_asks(
    headers: dict[str, str], quiet: float
) -> None:
    """A call that has failed again and again waits for minutes; the account is left alone as the
    provider says, or for a moment where it says nothing.
    """

    class Refused(ActivityInboundInterceptor):
        def __init__(self) -> None:
            """It is the innermost."""

        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            tell(headers)
            raise ApplicationError(
                "Slow down", type="RateLimitError", next_retry_delay=timedelta(seconds=300)
            )

    metered = Metered()
    with pytest.raises(ApplicationError):
        await metered.intercept_activity(Refused()).execute_activity(cast("Any", None))
    assert metered.taken() == Meter(refused=1, quiet=quiet)


async def test_what_is_heard_while_the_server_does_not_answer_is_told_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider asked to be left alone, and no other worker has heard it."""
    before = Account(limit=Limit(requests_per_minute=600))
    answers, kept = iter([True, False, True, True]), list[Account]()

    def answer() -> None:
        if not next(answers):
            raise RPCError("no answer", RPCStatusCode.UNAVAILABLE, b"")

    async def account_of(*_: Any) -> tuple[Account, float]:
        answer()
        return before, 10.0

    async def keep_rate(_client: Client, _queue: str, account: Account, _now: float) -> None:
        answer()
        kept.append(account)

    monkeypatch.setattr(limited, "account_of", account_of)
    monkeypatch.setattr(limited, "keep_rate", keep_rate)
    queues = LimitedQueues(cast("Client", None), cast("Any", None))
    metered = Metered()
    metered.meter.refuse(20.0)
    metered.meter.used(3_000)
    assert await queues._look("q", metered, before) == before
    assert kept == []
    metered.meter.used(1_000)
    after = await queues._look("q", metered, before)
    assert [after] == kept
    assert (after.share, after.slow, after.tokens) == (0.7, 0.05, 2_000.0)
    assert metered.taken() == Meter()
