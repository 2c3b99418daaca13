"""A call is made only if its worst case fits into what the job has left."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_calls import START, Job, attempt, model_at, openai_server, run
from temporalio.exceptions import ApplicationError

from activities._options import ModelOptions
from activities._worst_case import ASSUMED_REPLY, LEAST_REPLY, in_budget
from activities.contracts import BUDGET_SHORT, Left
from activities.prices import Price, dearest
from runtime.base.spec.models import Amount
from runtime.base.values import Failed, Usage

PROMPT = sum(segment.tokens for segment in START)
GPT_4O = 16_384
"""Tokens of its longest reply, by litellm's table."""


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("left", "option", "asked_for"),
    [
        (Left(tokens=10**6, usd=5.0, seconds=600), None, None),
        (Left(tokens=10**6, usd=PROMPT * 2.5e-6 + 1000 * 1e-5, seconds=600), None, 1000),
        (Left(tokens=PROMPT + 700, usd=5.0, seconds=600), None, 700),
        (Left(tokens=PROMPT + 700, usd=5.0, seconds=600), 500, 500),
        (Left(tokens=PROMPT + 700, usd=5.0, seconds=600), 2_000, 700),
    ],
    ids=["plenty", "dollars", "tokens", "asked for less", "asked for more"],
)
async def test_a_reply_is_no_longer_than_the_budget_holds(
    left: Left, option: int | None, asked_for: int | None
) -> None:
    """The request says so where less is left than the model may write, and is as ever elsewhere."""
    async with openai_server(lambda _m, _n: {"text": "Hello."}).serving() as server:
        options = {} if option is None else {"max_tokens": option}
        job = Job(model_at(server, **options))
        await run(job.store, job.call().model_copy(update={"left": left}), attempt(1))
        (exchange,) = server.exchanges
    assert json.loads(exchange.request).get("max_tokens") == asked_for


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("left", "words"),
    [
        (
            Left(tokens=PROMPT + LEAST_REPLY - 1, usd=5.0, seconds=600),
            f"would be more than the {PROMPT + LEAST_REPLY - 1} tokens left",
        ),
        (Left(tokens=10**6, usd=0.001, seconds=600), "may cost $0.0026, and $0.0010 is left"),
    ],
    ids=["tokens", "dollars"],
)
async def test_a_call_that_does_not_fit_is_not_made(left: Left, words: str) -> None:
    """Nothing is sent, and the error says what was short and what the call needs."""
    async with openai_server(lambda _m, _n: {"text": "Hello."}).serving() as server:
        job = Job(model_at(server))
        with pytest.raises(ApplicationError) as raised:
            await run(job.store, job.call().model_copy(update={"left": left}), attempt(1))
        assert server.exchanges == []
    assert (raised.value.type, raised.value.non_retryable) == (BUDGET_SHORT, True)
    assert raised.value.message.endswith(words)
    needed = Amount.model_validate(raised.value.details[1])
    assert needed.tokens == PROMPT + LEAST_REPLY


prices = st.floats(min_value=0, max_value=1_000, allow_nan=False)


@given(
    price=st.builds(Price, input=prices, output=prices, cache_write=st.none() | prices),
    prompt=st.integers(0, 300_000),
    most=st.none() | st.integers(1, 200_000),
    tokens=st.integers(0, 600_000),
    usd=st.floats(min_value=0, max_value=50, allow_nan=False),
    failed=st.integers(0, 100_000),
)
def test_no_worst_case_exceeds_what_is_left(
    price: Price, prompt: int, most: int | None, tokens: int, usd: float, failed: int
) -> None:
    """Of tokens and of dollars, whatever the model costs and the job asks for."""
    said: dict[str, Any] = {} if most is None else {"max_tokens": most}
    options = ModelOptions(name="openai/unheard-of", price=price, **said)
    left = Left(tokens=tokens, usd=usd, seconds=600)
    spent = Failed(attempts=1, usage=Usage(prompt=failed))
    try:
        fits = in_budget(options, prompt, left, spent, Failed())
    except ApplicationError as error:
        needed = Amount.model_validate(error.details[1])
        assert needed.tokens is not None
        assert needed.usd is not None
        assert needed.tokens > tokens - failed or needed.usd > usd - 2e-6
        return
    reply = fits.arguments.get("max_tokens", most or ASSUMED_REPLY)
    each = dearest(options.name, price, prompt + reply)
    assert prompt + reply <= tokens - failed
    assert prompt * each.prompt + reply * each.reply <= usd + 1e-6
    assert reply >= min(LEAST_REPLY, most or ASSUMED_REPLY)
