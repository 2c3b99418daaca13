"""What a provider says that a call used, and that no call can have used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from gateway import Gateway, job_at
from model_calls import (
    RUN,
    START,
    Job,
    anthropic_server,
    attempt,
    model_at,
    openai_server,
    responses_server,
)
from temporalio.exceptions import ApplicationError
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities._litellm_library import library
from activities._readable import readable_body, readable_event
from activities._reported_usage import usage_in, usage_of
from activities.contracts import TurnReply
from activities.metered import Metered
from runtime.base.spec.models import Amount, Budget
from runtime.base.values import Usage
from runtime.context.sub_job_end import SubJobEnd
from runtime.job.ledger import Ledger
from runtime.job.sub_jobs import SubJob
from tests.servers.anthropic_server import AnthropicProtocol
from tests.servers.provider_server import Policy, ProviderServer, ServerReply

COUNTED = Usage(prompt=sum(s.tokens for s in START), completion=2, reported=False)
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
BILLION = 10**9
SERVED: dict[str, Callable[[Policy], ProviderServer]] = {
    "gpt-4o": openai_server,
    "claude-sonnet-4-5": anthropic_server,
    "gpt-5-codex": responses_server,
}


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "said",
    [
        {"completion_tokens": -1_000_000},
        {"completion_tokens": BILLION + 1},
        {"prompt_tokens": 10**30},
        {"prompt_tokens_details": {"cached_tokens": -5}},
        {"completion_tokens_details": {"reasoning_tokens": -BILLION}},
        {"cache_read_input_tokens": 0.5},
    ],
    ids=str,
)
async def test_what_no_call_can_have_used_is_counted(said: dict[str, Any], stream: bool) -> None:
    """Booked, priced and marked as where the provider reports nothing."""
    async with openai_server(
        lambda _m, _n: {"text": "Hello.", "usage": {**USAGE, **said}}
    ).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    assert reply.usage == COUNTED
    assert reply.cost_usd == pytest.approx(COUNTED.prompt * 2.5e-6 + 2 * 1e-5)


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_no_provider_pays_for_its_own_searches(stream: bool) -> None:
    """A search has a price of its own: of fewer than none, the call cost less than nothing."""
    used = {"input_tokens": 100, "output_tokens": 5}
    used |= {"server_tool_use": {"web_search_requests": -1_000}}
    async with anthropic_server(
        lambda _m, _n: {"text": "Hello.", "usage": used}
    ).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    assert reply.usage == COUNTED
    assert reply.cost_usd > 0


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-4o", "much"),
        ("gpt-4o", {"prompt_tokens": "many", "completion_tokens": 3}),
        ("gpt-4o", {"prompt_tokens": {"of": 5}}),
        ("claude-sonnet-4-5", [1000, 100]),
        ("claude-sonnet-4-5", {"input_tokens": "1 000", "output_tokens": 3}),
        ("gpt-4o", {"prompt_tokens": 1e300, "completion_tokens": 3}),
        *(
            # Its module takes a second to import.
            pytest.param("gpt-5-codex", said, marks=pytest.mark.slow)
            for said in (
                {"input_tokens": 5.5, "output_tokens": 3},
                {"input_tokens": None, "output_tokens": 3, "total_tokens": 3},
            )
        ),
    ],
    ids=str,
)
async def test_what_cannot_be_read_is_counted(name: str, said: Any, stream: bool) -> None:
    """The reply is there and paid for: litellm failed, and each of the calls that followed was
    paid for as well. The archive has what came.
    """
    serve = SERVED[name]
    async with serve(lambda _m, _n: {"text": "Hello.", "usage": said}).serving() as server:
        model = model_at(server, stream=stream)
        job = Job({**model, "name": f"{str(model['name']).partition('/')[0]}/{name}"})
        reply = await job.take_turn()
        (exchange,) = server.exchanges
    assert (reply.text, reply.usage.prompt, reply.usage.reported) == (
        "Hello.",
        COUNTED.prompt,
        False,
    )
    assert job.archive.wire_response(RUN, 1) == exchange.response
    assert readable_body(exchange.response) is not None


@pytest.mark.usefixtures("litellm")
def test_details_that_are_nested_deep_do_no_harm() -> None:
    """Python reads them from 3.12 on, and does not go through them by calls in one another."""
    details: Any = 1
    for _ in range(2_000):
        details = {"x": details}
    usage = usage_of(library().Usage(prompt_tokens=7, completion_tokens=2, details=details))
    assert usage is not None
    assert (usage.prompt, usage.completion) == (7, 2)


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_figures_are_booked_beside_details_that_cannot_be_read(stream: bool) -> None:
    """They are the provider's own."""
    said = {**USAGE, "completion_tokens_details": [4], "prompt_tokens_details": "none"}
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": said}).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    assert reply.usage == Usage(prompt=1000, completion=100)


@pytest.mark.usefixtures("litellm")
async def test_a_stream_that_tells_no_usage_is_archived_to_its_end() -> None:
    """litellm hears its last event only after the usage, which it makes up."""
    said = {"text": "Hello.", "usage": {}}
    async with anthropic_server(lambda _m, _n: said).serving() as server:
        job = Job(model_at(server))
        assert (await job.take_turn()).usage.reported is False
    assert server.exchanges[0].response.endswith(b'{"type": "message_stop"}\n\n')
    assert job.archive.wire_response(RUN, 1) == server.exchanges[0].response


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    "end", [{}, {"usage": None}, *({"usage": {"output_tokens": n}} for n in (0, None, "9", 1.5))]
)
async def test_what_a_streams_end_does_not_tell_is_counted(end: dict[str, Any]) -> None:
    """Where it begins it states the usage of a reply of a token: a reply of any length was booked
    as that. What it states of the prompt there holds.
    """
    text = "Hello there. " * 50
    begin = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"}
    begin |= {"usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 1}}
    delta = {"type": "text_delta", "text": text}
    block = {"type": "content_block_start", "index": 0}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begin},
        {**block, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **end},
        {"type": "message_stop"},
    ]
    lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    async with Gateway("".join(lines).encode(), "text/event-stream") as address:
        reply = await job_at(address, "anthropic/claude-sonnet-4-5").take_turn()
    assert reply.text == text
    counted = Usage(prompt=1000, completion=reply.tokens, cache_read=900, reported=False)
    assert reply.usage == counted


@pytest.mark.usefixtures("litellm")
async def test_a_figure_that_is_null_takes_nothing_back() -> None:
    """Where a stream ends, a figure of the prompt may be null: it stands where it begins."""
    server = anthropic_server(lambda _m, _n: {"text": "Hello."})
    async with server.serving():
        await Job(model_at(server)).take_turn()
        (exchange,) = server.exchanges
    body = exchange.response.replace(
        b'"usage": {"output_tokens": 1}}', b'"usage": {"input_tokens": null, "output_tokens": 7}}'
    )
    assert body != exchange.response
    async with Gateway(body, "text/event-stream") as address:
        reply = await job_at(address, "anthropic/claude-sonnet-4-5").take_turn()
    assert reply.usage == Usage(prompt=1000, completion=7, cache_read=600, cache_write=300)


@pytest.mark.usefixtures("litellm")
async def test_a_whole_reply_that_tells_no_usage_is_read() -> None:
    """It is paid for; as where it is null, what it used is counted."""
    body = AnthropicProtocol().whole(ServerReply(text="Hello."), {"model": "m"}, 1)
    del body["usage"]
    async with Gateway(json.dumps(body).encode()) as address:
        reply = await job_at(address, "anthropic/claude-sonnet-4-5").take_turn()
    assert (reply.text, reply.usage) == ("Hello.", COUNTED)


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b"no JSON",
            b'{"usage": null}',
            b'{"usage": {}, "choices": [{"usage": {"x": "y"}}]}',
        ),
        b'{"usage": {"prompt_tokens": -5, "cost": "x", "prompt_tokens_details": null}}',
        b'data: {"choices": [], "usage": {"prompt_tokens": 5}}\n\n',
        b'{"a": {"b": {"c": {"d": {"e": {"usage": "of a reply"}}}}}}',
    ],
)
def test_what_can_be_read_is_left_as_it_came(body: bytes) -> None:
    """To the byte; figures that no call can have are looked at later."""
    assert readable_body(body) is None
    assert readable_event(body) == body


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("kind", ["cache_read_input_tokens", "cache_creation_input_tokens"])
async def test_a_cache_that_holds_less_than_nothing_is_counted(kind: str) -> None:
    """It is part of the prompt where Anthropic's protocol is spoken."""
    usage = {"input_tokens": 1000, "output_tokens": 100, kind: -5000}
    async with anthropic_server(
        lambda _m, _n: {"text": "Hello.", "usage": usage}
    ).serving() as server:
        reply = await Job(model_at(server)).take_turn()
    assert reply.usage == COUNTED


@pytest.mark.usefixtures("litellm")
async def test_what_a_call_can_have_used_is_booked_as_reported() -> None:
    """Up to the bound in all."""
    said = {
        **USAGE,
        "completion_tokens": BILLION - 1000,
        "prompt_tokens_details": {"cached_tokens": 1000},
    }
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": said}).serving() as server:
        reply = await Job(model_at(server)).take_turn()
    assert reply.usage == Usage(prompt=1000, completion=BILLION - 1000, cache_read=1000)


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("said", "prompt", "completion"),
    [
        ({"prompt_tokens": 1000}, 1000, COUNTED.completion),
        ({"prompt_tokens": 1000, "total_tokens": 1100}, 1000, COUNTED.completion),
        ({**USAGE, "completion_tokens": 0}, 1000, COUNTED.completion),
        ({**USAGE, "completion_tokens": None}, 1000, COUNTED.completion),
        ({**USAGE, "prompt_tokens": 0}, COUNTED.prompt, 100),
        ({**USAGE, "prompt_tokens": None}, COUNTED.prompt, 100),
        ({"completion_tokens": 100}, COUNTED.prompt, 100),
        (dict.fromkeys(USAGE, 0), COUNTED.prompt, COUNTED.completion),
    ],
    ids=str,
)
async def test_a_part_that_is_missing_is_counted(
    said: dict[str, Any], prompt: int, completion: int, stream: bool
) -> None:
    """A budget would not hold what is booked as nothing; the other part is booked as reported."""
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": said}).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    assert reply.usage == Usage(prompt=prompt, completion=completion, reported=False)
    assert reply.cost_usd == pytest.approx(prompt * 2.5e-6 + completion * 1e-5)


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("said", "booked"),
    [
        (
            {"prompt_tokens_details": {"cached_tokens": 5000}},
            Usage(prompt=6000, completion=100, cache_read=5000, reported=False),
        ),
        (
            {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 700},
            Usage(prompt=2400, completion=100, cache_read=700, cache_write=700, reported=False),
        ),
        (
            {"completion_tokens_details": {"reasoning_tokens": 500}},
            Usage(prompt=1000, completion=600, reported=False),
        ),
    ],
    ids=str,
)
async def test_a_part_that_is_more_than_the_whole_stands_beside_it(
    said: dict[str, Any], booked: Usage
) -> None:
    """As some count; which of the two it is nobody knows, so it is an estimate."""
    usage = {**USAGE, **said}
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": usage}).serving() as server:
        reply = await Job(model_at(server)).take_turn()
    assert reply.usage == booked
    # Of an attempt that failed too.
    assert usage_in(json.dumps({"usage": usage}).encode()) == booked


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("kind", ["text", "code"])
async def test_what_came_of_a_stream_that_broke_off_is_counted(kind: str) -> None:
    """Where it begins it states the usage of a reply of a token; what a call was to execute counts
    as well.
    """
    usage = {"input_tokens": 1000, "output_tokens": 1}
    said = {kind: "x = 1\n" * 200, "usage": usage, "break_after": 400}
    async with anthropic_server(lambda _m, _n: said).serving() as server:
        with pytest.raises(ApplicationError) as failed:
            await Job(model_at(server)).take_turn()
    (spent,) = failed.value.details
    assert (spent.usage.prompt, spent.usage.reported) == (1000, False)
    assert 100 < spent.usage.completion < 400


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("said", "completion"),
    [
        ({"thoughtsTokenCount": 4000, "totalTokenCount": 5100}, 4100),
        ({"thoughtsTokenCount": 40, "totalTokenCount": 1100}, 100),
        ({"thoughtsTokenCount": 40, "totalTokenCount": 1107, "toolUsePromptTokenCount": 7}, 100),
        ({"totalTokenCount": 1100}, 100),
    ],
    ids=str,
)
async def test_thoughts_of_gemini_are_booked_also_where_its_stream_broke_off(
    said: dict[str, Any], completion: int
) -> None:
    """They stand beside the reply's tokens, and are most of what such a call costs; those of the
    cache are of the prompt.
    """
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "cachedContentTokenCount": 300}
    parts = {"role": "model", "parts": [{"text": "Hello."}]}
    told = {"candidates": [{"content": parts, "index": 0}], "usageMetadata": {**usage, **said}}
    async with Gateway(b"data: %b\n\n" % json.dumps(told).encode(), "text/event-stream") as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, "gemini/gemini-2.5-pro").take_turn()
    (spent,) = failed.value.details
    assert failed.value.type == "StreamBroken"
    assert spent.usage == Usage(prompt=1000, completion=completion, cache_read=300)
    whole = told["candidates"][0] | {"finishReason": "STOP"}
    body = json.dumps({**told, "candidates": [whole]}).encode()
    async with Gateway(b"data: %b\n\n" % body, "text/event-stream") as address:
        reply = await job_at(address, "gemini/gemini-2.5-pro").take_turn()
    assert reply.usage.completion == completion


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("said", [-5000, 10**30])
async def test_an_attempt_that_failed_is_estimated_as_well(said: int) -> None:
    """A stream that states its usage and breaks off."""
    usage = {"input_tokens": said, "output_tokens": 1}
    async with anthropic_server(
        lambda _m, _n: {"text": "Hello. " * 20, "usage": usage, "break_after": 40}
    ).serving() as server:
        with pytest.raises(ApplicationError) as failed:
            await Job(model_at(server)).take_turn()
    (spent,) = failed.value.details
    assert (spent.usage.prompt, spent.usage.reported) == (COUNTED.prompt, False)


def test_whole_numbers_may_be_written_with_a_point() -> None:
    """Of an attempt that failed too."""
    said = {"prompt_tokens": 1000.0, "completion_tokens": 100.0}
    assert usage_in(json.dumps({"usage": said}).encode()) == Usage(prompt=1000, completion=100)


def test_thoughts_that_are_told_alone_are_booked() -> None:
    """As by a stream of Gemini's that broke off before it told more, its total included."""
    body = b'data: {"usageMetadata": {"thoughtsTokenCount": 4000}}'
    assert usage_in(body) == Usage(completion=4000)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(prompt=1000, completion=-1_000_000, cache_read=-1), -9.99),
        (Usage(prompt=10**30, completion=2**64), 1e24),
        (Usage(), float("nan")),
    ],
)
async def test_metrics_fail_no_turn(usage: Usage, cost: float) -> None:
    """A turn is archived when it is counted: its retry would be answered with the same figures."""
    told = TurnReply.model_construct(usage=usage, cost_usd=cost)

    class Archived(ActivityInboundInterceptor):
        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            return told

    metrics = TelemetryConfig(metrics=PrometheusConfig(bind_address="127.0.0.1:0"))
    environment = attempt(1)
    environment.metric_meter = Runtime(telemetry=metrics).metric_meter
    counted = Metered().intercept_activity(Archived(None))  # type: ignore[arg-type]
    order = ExecuteActivityInput(
        fn=print, args=[Job({"name": "openai/gpt-4o"}).call()], executor=None, headers={}
    )
    assert await environment.run(counted.execute_activity, order) is told


def test_a_job_goes_on_from_what_a_release_before_booked() -> None:
    """Less than nothing counts as nothing where the batch's budget is concerned."""
    ledger = Ledger(Budget(), started=0.0, granted=Amount(turns=5, tokens=1000, usd=1.0))
    ledger.add_call(Usage(prompt=1000, completion=-1_000_000), -9.99)
    assert ledger.slice_left(1) == Amount(turns=4, tokens=1000, usd=1.0)
    assert ledger.wants(1) is None
    end = SubJobEnd(job="b/c", status="succeeded", turns=1, tokens=-5, usd=-1.0)
    sub_job = SubJob(job="b/c", parent="b/a", call="", lent=Amount(), end=end)
    assert sub_job.taken == Amount(turns=1, tokens=0, usd=0.0)
