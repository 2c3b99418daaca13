"""One call of a model through litellm: one path for every provider."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from itertools import repeat
from operator import contains
from typing import Any

from activities._answer import (
    Answer,
    AnswerBuilder,
    failed_by,
    id_in,
    inputs_in,
    reason_in,
    refusal_in,
)
from activities._captured import CapturedCall, Silence, current
from activities._cut_streams import (
    error_in,
    error_words,
    is_cut,
    is_foreign,
    is_none,
    is_spoken,
)
from activities._failures import StreamBroken
from activities._lent import Lent
from activities._litellm_library import library, loaded
from activities._options import ModelOptions
from activities._readable import readable_body
from activities._reported_usage import reports_usage
from activities._responses import as_chat, response_in, unfinished_by
from activities._unstreamed import (
    ErrorReply,
    fault_in,
    foreign,
    is_whole,
    played,
    unread,
    whole_in,
)
from runtime.base.digests import canonical_json
from runtime.base.spec.models import SCRIPTED
from runtime.base.values import ToolCall, Usage
from runtime.projection.messages import REASONING_ITEMS

_ERROR = re.compile(rb"\"error\"\s*:\s*[{\"]")
"""What tells that an event of a stream is an error, of which litellm makes one of its own."""

_STATELESS = frozenset({"openai", "azure"})
"""Providers whose Responses API encrypts reasoning items, so that it need not keep them itself."""

_ROUTED_BY = ("api_base", "reasoning_effort", "reasoning_summary")
_MOST_ROUTES = 1_000
_routes: dict[bytes, str | None] = {}


async def ask(
    options: ModelOptions,
    messages: Lent,
    tools: list[dict[str, Any]] | None,
    captured: CapturedCall,
) -> Answer:
    """Call the model once, without retries of litellm's own, reporting to ``captured``.

    The ``messages`` may be changed.

    Raises:
        Exception: whatever litellm or the transport raises; ``failure_of`` reads it.
    """
    lite = await loaded()
    provider = await _route(lite, options, tools)
    arguments = _arguments(options, messages, tools, provider)
    builder = AnswerBuilder(captured.turn)
    captured.heard = builder
    # Before the call: the transports below litellm have no other way to know whose bytes pass.
    token = current.set(captured)
    try:
        async with asyncio.timeout(options.timeout) as whole:
            await _hear(lite, arguments, builder)
    except TimeoutError as error:
        if whole.expired():
            captured.failure = Silence(f"the reply was not complete after {options.timeout:g} s")
            raise captured.failure from error
        raise
    except Exception as error:
        again = await _reread_as_readable(lite, arguments, captured)
        if again is not None:
            captured.heard = builder = again
        elif not _is_answered(captured, options, error):
            captured.failure = captured.failure or _failed(captured)
            raise
    finally:
        current.reset(token)
    if is_cut(captured):
        captured.failure = StreamBroken("the stream ended before the reply was complete")
        raise captured.failure
    if options.stream and (told := error_in(captured)) is not None:
        captured.failure = told
        raise told
    if (failed := _failed(captured)) is not None:
        captured.failure = failed
        raise failed
    if builder.is_empty and captured.succeeded:
        builder = await _reread(lite, arguments, captured, builder)
    return _as_received(builder.answer(), options, captured)


def _failed(captured: CapturedCall) -> Exception | None:
    """Why a reply is none that its provider says has failed, in the reason by which it ended, or
    that it has not got through with, in its status.
    """
    if not captured.succeeded:
        return None
    reason, status = failed_by(captured.content), unfinished_by(whole_in(captured))
    if reason is None and status is None:
        return None
    if (words := error_words(captured)) is not None:
        return ErrorReply(words)
    return StreamBroken(
        f"the reply is not complete (its status is {status!r})"
        if reason is None
        else f"the reply failed at its provider (it ended by {reason!r})"
    )


async def _hear(lite: Any, arguments: dict[str, Any], builder: AnswerBuilder) -> None:
    """Have litellm call the model, and ``builder`` hear what it answers."""
    response = await lite.acompletion(**arguments)
    if arguments["stream"]:
        # Left early, the stream's connection would stay open until the collector comes to it.
        async with aclosing(response):
            async for chunk in response:
                builder.add(chunk)
    else:
        builder.add_response(response)


async def _reread_as_readable(
    lite: Any, arguments: dict[str, Any], captured: CapturedCall
) -> AnswerBuilder | None:
    """The reply in a response of which litellm cannot read the usage, or a text in parts; None if
    that is not what failed.
    """
    if captured.failure is not None or not captured.succeeded:
        return None
    body = readable_body(captured.content)
    if body is None:
        return None
    builder = AnswerBuilder(captured.turn)
    token = played.set(body)
    try:
        await _hear(lite, arguments, builder)
    except Exception:  # noqa: BLE001 - what was raised at first says why
        return None
    finally:
        played.reset(token)
    return builder


def _is_answered(captured: CapturedCall, options: ModelOptions, error: Exception) -> bool:
    """Whether the reply is there, although litellm raised; if a whole response has none, the call
    failed by what that says.
    """
    if (
        captured.succeeded
        and not options.stream
        and _is_litellms_own(error)
        and not _is_silent(captured)
    ):
        # litellm made nothing of it: what it says counts.
        captured.failure = captured.failure or fault_in(captured) or unread(captured)
    return captured.failure is None and _can_be_read(captured, options, error)


def _can_be_read(captured: CapturedCall, options: ModelOptions, error: Exception) -> bool:
    """Whether the reply is there, although litellm raised: it asks for a last event or a reason
    that some endpoints do not send, and for a stream where some answer as a whole.
    """
    # Whether the stream is cut, and what it says of an error, is looked at for all streams.
    if options.stream and "before a finish_reason was received" in str(error):
        return True
    ended_early = (
        is_cut(captured)
        and "before any terminal event" in str(error)
        and not _ERROR.search(captured.content)
    )
    return ended_early or (options.stream and is_whole(captured)) or _is_silent(captured)


def _is_silent(captured: CapturedCall) -> bool:
    """Whether the response is a complete one of OpenAI's Responses API in which the model said
    nothing, of which litellm makes an error.
    """
    if not is_whole(captured):
        return False
    response = response_in(whole_in(captured))
    return response is not None and not response["output"] and response.get("error") is None


async def _reread(
    lite: Any, arguments: dict[str, Any], captured: CapturedCall, streamed: AnswerBuilder
) -> AnswerBuilder:
    """The reply in a response that was asked for as a stream and had none: a whole one, which
    litellm reads as such; else what was ``streamed``, which says why there is none and what it
    cost.

    Raises:
        NotAModel: what came is no reply.
        TornReply: it is half of one.
        ErrorReply: it says that the call failed.
    """
    captured.failure = fault_in(captured)
    if captured.failure is not None:
        raise captured.failure
    if _is_silent(captured):
        return streamed
    if not is_whole(captured):
        if is_none(captured):
            captured.failure = unread(captured)
            raise captured.failure
        if not is_spoken(captured) or response_in(whole_in(captured)) is not None:
            return streamed
        protocol = _protocol(lite, arguments)
        if is_foreign(captured, protocol):
            captured.failure = foreign(captured, protocol)
            raise captured.failure
        return streamed
    builder = AnswerBuilder(captured.turn)
    whole = whole_in(captured)
    token = played.set(readable_body(whole) or whole)
    # It is a call of ours still: what litellm does in those for nobody, and what it makes of long
    # texts, is left out.
    call = current.set(captured)
    try:
        asked = {name: value for name, value in arguments.items() if name != "stream_options"}
        builder.add_response(await lite.acompletion(**{**asked, "stream": False}))
    except Exception as error:
        captured.failure = unread(captured)
        raise captured.failure from error
    finally:
        current.reset(call)
        played.reset(token)
    if builder.is_empty and not reports_usage(captured):
        captured.failure = unread(captured)
        raise captured.failure
    return builder


def _protocol(lite: Any, arguments: dict[str, Any]) -> str:
    """The provider whose protocol the reply is read in."""
    name = arguments["model"]
    provider = str(lite.get_llm_provider(name, api_base=arguments.get("api_base"))[1])
    if provider == "azure_ai" and "claude" in name.lower():
        return "anthropic"
    spoken_by_many = {"azure", "mistral", "openrouter", *lite.openai_compatible_providers}
    return "openai" if provider in spoken_by_many else provider


def _as_received(answer: Answer, options: ModelOptions, captured: CapturedCall) -> Answer:
    """``answer`` with what litellm drops from the bytes that were received."""
    response = response_in(whole_in(captured))
    if response is not None:
        builder = AnswerBuilder(captured.turn)
        builder.add_response(as_chat(response))
        return replace(builder.answer(), usage=answer.usage)
    if captured.succeeded:
        answer = replace(
            answer,
            response_id=id_in(captured.said, answer.response_id),
            finish_reason=reason_in(captured.content, answer.finish_reason),
        )
    if not options.stream:
        return answer
    inputs = inputs_in(captured.content)
    return replace(
        answer,
        refusal=answer.refusal or refusal_in(captured.content),
        tool_calls=tuple(_with_input(call, inputs.get(call.id)) for call in answer.tool_calls),
    )


def _with_input(call: ToolCall, input: str | None) -> ToolCall:
    """``call`` with the ``input`` with which it began, where no arguments came behind that."""
    if input is None or call.arguments not in ("", "{}"):
        return call
    return call.model_copy(update={"arguments": input})


def price(options: ModelOptions, usage: Any, tier: str | None = None) -> float:
    """The cost of a call in US dollars by litellm's own table, 0.0 for what that does not know.

    It is that of the ``tier`` of service that the reply says, else of the one that was asked for.
    """
    if options.name.startswith(SCRIPTED):
        # litellm looks long for the price of what it does not know.
        return 0.0
    lite = library()
    try:
        response = lite.ModelResponse(model=options.name, usage=usage, service_tier=tier)
        asked = {"service_tier": options.tier}
        return float(
            lite.completion_cost(
                completion_response=response, model=options.name, optional_params=asked
            )
        )
    except Exception:  # noqa: BLE001 - litellm raises many types for a model it has no price of
        return 0.0


async def _route(
    lite: Any, options: ModelOptions, tools: list[dict[str, Any]] | None
) -> str | None:
    """``_responses_provider``, looked up once for each way in which models are called.

    Raises:
        ImportError: a package that it needs is not installed.
    """
    asked = {name: options.arguments.get(name) for name in _ROUTED_BY}
    way = canonical_json([options.name, asked, tools])
    if way not in _routes:
        provider = await asyncio.to_thread(_responses_provider, lite, options, tools)
        # ``tools`` and options are the user's: without a bound a worker of months would keep all of
        # them.
        if len(_routes) >= _MOST_ROUTES:
            _routes.clear()
        _routes[way] = provider
    return _routes[way]


def _responses_provider(
    lite: Any, options: ModelOptions, tools: list[dict[str, Any]] | None
) -> str | None:
    """The provider whose Responses API litellm calls for this call, else None.

    What it needs for that is imported here.

    Raises:
        ImportError: a package that it needs is not installed.
    """
    main: Any = import_module("litellm.main")
    asked = options.arguments
    try:
        model, provider, _, base = lite.get_llm_provider(
            options.name, api_base=asked.get("api_base")
        )
    except Exception:  # noqa: BLE001 - the call itself says that the model is unknown
        return None
    info, _ = main.responses_api_bridge_check(
        model=model,
        custom_llm_provider=provider,
        tools=tools,
        reasoning_effort=asked.get("reasoning_effort"),
        reasoning_summary=asked.get("reasoning_summary"),
        api_base=asked.get("api_base") or base,
    )
    if info.get("mode") != "responses":
        return None
    # It takes a second, which the event loop may not stand still for.
    import_module("litellm.responses.mcp.litellm_proxy_mcp_handler")
    return str(provider)


def _arguments(
    options: ModelOptions,
    messages: Lent,
    tools: list[dict[str, Any]] | None,
    responses: str | None,
) -> dict[str, Any]:
    """All of litellm's arguments for the call; ``responses`` is the provider whose Responses API it
    goes to.
    """
    if responses is None and any(map(contains, messages, repeat(REASONING_ITEMS))):
        for message in messages:
            message.pop(REASONING_ITEMS, None)
    arguments = {**options.arguments, **_fixed(options, messages, tools)}
    if responses in _STATELESS and not arguments.keys() & {"store", "include"}:
        # The archive holds all of a prompt: nothing in it may be a reference to what the provider
        # keeps for a while.
        stateless = {"store": False, "include": ["reasoning.encrypted_content"]}
        # What the job's options say of it wins.
        arguments["extra_body"] = {**stateless, **arguments.get("extra_body", {})}
    return arguments


def cost_of(options: ModelOptions, usage: Usage) -> float:
    """The cost of ``usage`` in US dollars: by the file's own price, else by litellm's table."""
    if options.price is not None:
        return options.price.cost(usage)
    whole = library().Usage(
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        total_tokens=usage.total,
        cache_read_input_tokens=usage.cache_read,
        cache_creation_input_tokens=usage.cache_write,
    )
    return price(options, whole)


def _fixed(
    options: ModelOptions, messages: Lent, tools: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """The arguments that no option may change."""
    fixed: dict[str, Any] = {
        "model": options.name,
        "messages": messages,
        "stream": options.stream,
        "timeout": options.timeout,
        # Retries are Temporal's, which are bounded and booked.
        "num_retries": 0,
        "max_retries": 0,
        # litellm's gateway for MCP tools needs a package that is not installed with it.
        "_skip_mcp_handler": True,
    }
    if tools:
        fixed["tools"] = tools
    if options.stream:
        fixed["stream_options"] = {
            **options.arguments.get("stream_options", {}),
            # Without it OpenAI's protocol streams no usage, and the budget would go by an estimate.
            "include_usage": True,
        }
    return fixed


def _is_litellms_own(error: Exception) -> bool:
    """Whether an error says no more than that litellm did not get through with a response."""
    status = getattr(error, "status_code", None)
    # It may have the status of success from the response itself.
    return not (isinstance(status, int) and 400 <= status < 500)
