"""What a call costs by the price that the jobs file gives its model."""

import pytest
from model_calls import Job, model_at, openai_server

from activities.prices import Price, has_price, mode_of, prices_of, streams
from runtime.base.values import Usage
from runtime.projection.prices import Prices

pytestmark = pytest.mark.usefixtures("litellm")

PRICE = {"input": 2.0, "output": 10.0, "cache_read": 0.5, "cache_write": 3.0}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 400},
}


async def test_the_files_price_is_the_calls() -> None:
    """It counts for a model that no table has, and before the table for one that it has; no
    provider is told of it.
    """
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": USAGE}).serving() as server:
        for name in ("hosted_vllm/nobodys", "openai/gpt-4o"):
            reply = await Job(model_at(server, name=name, price=PRICE)).take_turn()
            assert reply.cost_usd == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
        assert all(b"price" not in exchange.request for exchange in server.exchanges)


async def test_usage_that_was_counted_has_the_files_price() -> None:
    """A server that reports no usage is paid by what was counted."""
    async with openai_server(
        lambda _m, _n: {"text": "Hello.", "usage": {"none": 0}}
    ).serving() as server:
        reply = await Job(model_at(server, price={"input": 1e6, "output": 1e6})).take_turn()
    assert not reply.usage.reported
    assert reply.cost_usd == reply.usage.prompt + reply.usage.completion


def test_a_price_without_caches_counts_all_tokens_alike() -> None:
    """What is not said of the cache costs as other tokens do."""
    plain = Price(input=2, output=10)
    assert plain.cost(
        Usage(prompt=1000, completion=100, cache_read=400, cache_write=100)
    ) == pytest.approx(0.003)
    assert prices_of("hosted_vllm/nobodys", plain) == Prices(usd=2e-6, read=1.0, write=1.0)
    assert prices_of("hosted_vllm/nobodys", Price.model_validate(PRICE)) == Prices(
        usd=2e-6, read=0.25, write=1.5
    )
    assert prices_of("hosted_vllm/nobodys", Price(input=0, output=0)) == Prices()


def test_the_table_knows_modes_prices_and_streams() -> None:
    """Of models by their names with and without their providers'; of others nothing."""
    assert (mode_of("openai/gpt-5-codex"), mode_of("text-embedding-3-small"), mode_of("x/y")) == (
        "responses",
        "embedding",
        None,
    )
    assert (has_price("gpt-5"), has_price("ollama/mistral"), has_price("x/y")) == (
        True,
        True,
        False,
    )
    assert (streams("gpt-5"), streams("openai/gpt-5-pro"), streams("x/y")) == (True, False, True)
