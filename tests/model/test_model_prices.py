"""What a call costs by the price that the jobs file gives its model."""

import pytest
from model_calls import Job, model_at, openai_server

from activities.known_models import is_priced
from activities.prices import PerToken, Price, dearest, has_price, mode_of, prices_of, streams
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


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("asked", "served", "times"),
    [
        (None, None, 1.0),
        ("priority", None, 2.0),
        ("priority", "priority", 2.0),
        ("priority", "default", 1.0),
        ("auto", "flex", 0.5),
    ],
)
async def test_a_call_costs_what_its_tier_of_service_does(
    asked: str | None, served: str | None, times: float, stream: bool
) -> None:
    """The one that the reply says, else the one that was asked for."""
    said = {"text": "Hello.", "usage": {**USAGE, "prompt_tokens_details": None}}
    options = {} if asked is None else {"service_tier": asked}
    async with openai_server(lambda _m, _n: {**said, "service_tier": served}).serving() as server:
        job = Job(model_at(server, name="openai/gpt-5", stream=stream, **options))
        reply = await job.take_turn()
    assert reply.cost_usd == pytest.approx(times * (1000 * 1.25e-6 + 100 * 1e-5))


async def test_an_estimate_costs_what_the_tier_does_that_was_asked_for() -> None:
    """Nobody says what was used, or how it was served."""
    said = {"text": "Hello.", "usage": {"none": 0}}
    async with openai_server(lambda _m, _n: said).serving() as server:
        model = model_at(server, name="openai/gpt-5", service_tier="priority")
        reply = await Job(model).take_turn()
    assert reply.cost_usd == pytest.approx(reply.usage.prompt * 2.5e-6 + 2 * 2e-5)


@pytest.mark.parametrize(
    ("model", "window", "tier", "prompt", "reply"),
    [
        ("openai/gpt-5", 2_000, None, 1.25e-6, 1e-5),
        ("openai/gpt-5", 2_000, "priority", 2.5e-6, 2e-5),
        ("openai/gpt-5", 2_000, "flex", 1.25e-6, 1e-5),
        ("openai/gpt-5", 2_000, "auto", 1.25e-6, 1e-5),
        ("dashscope/qwen-plus-2025-04-28", 2_000, None, 4e-7, 4e-6),
        ("dashscope/qwen-flash", 256_000, None, 5e-8, 4e-7),
        ("dashscope/qwen-flash", 256_001, None, 2.5e-7, 2e-6),
    ],
)
def test_the_dearest_price_is_that_of_the_tier_of_thoughts_and_of_long_prompts(
    model: str, window: int, tier: str | None, prompt: float, reply: float
) -> None:
    """Whichever of those that a call may come to costs most; never less than without a tier."""
    assert dearest(model, None, window, tier) == PerToken(prompt, reply)


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
    assert [has_price(name) for name in ("gpt-5", "ollama/mistral", "dashscope/qwen-flash")] == (
        [True] * 3
    )
    assert not has_price("x/y")
    assert (streams("gpt-5"), streams("openai/gpt-5-pro"), streams("x/y")) == (True, False, True)


@pytest.mark.parametrize(
    ("name", "priced"),
    [
        ("openai/gpt-4o", True),
        ("litellm_proxy/gpt-4o", True),
        ("ollama/mistral", True),
        ("hosted_vllm/gpt-4o", False),
        ("aiohttp_openai/gpt-4o", False),
        ("openrouter/gpt-4o", False),
        ("scripted//home/me/policy.py", True),
    ],
)
def test_a_model_has_the_price_that_is_booked(name: str, priced: bool) -> None:
    """The table knows another provider's by the name, and its calls count as nothing: a budget in
    dollars would hold none of them.
    """
    assert is_priced(name, {}) is priced
    assert is_priced(name, {"price": PRICE})
