"""litellm, imported late and set up once, with our transports below all of its calls.

``import litellm`` takes seconds, so nothing imports it before a model is called or ``warm`` is.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib import import_module
from threading import Lock
from typing import Any

from activities import _scripted
from activities._answer import Answer, AnswerBuilder
from activities._quiet import has_listeners, quieten
from activities._script import replies_in
from activities._short_errors import shorten_errors
from activities._wire import AsyncWire, SyncWire, Verify
from runtime.base.collector import loading

_lock = Lock()
_ready: Any = None


def warm() -> None:
    """Import litellm and set it up.

    Takes seconds the first time; call it when a worker starts, in a thread.
    """
    library()


def library() -> Any:
    """The litellm module, set up for this process."""
    global _ready
    with _lock:
        if _ready is None:
            with loading():
                _ready = _set_up()
        return _ready


async def loaded() -> Any:
    """As ``library``: imported in a thread, since the event loop would serve nobody for seconds."""
    return _ready or await asyncio.to_thread(library)


def is_heard() -> bool:
    """Whether anybody listens to what litellm's callbacks are told."""
    return has_listeners(library())


def _set_up() -> Any:
    # Without this litellm asks the network for prices while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # litellm's own models make pydantic warn; its users can do nothing about it.
    warnings.filterwarnings("ignore", message=".*ReadOnly.* qualifier", category=UserWarning)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    # And without this it takes variables from the first file ``.env`` above the place where it is
    # installed, whoever put that there: where prompts and keys go, what tools may have.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    lite: Any = import_module("litellm")
    # It prints "Give Feedback / Get Help" to stdout with each error, where commands print JSON.
    lite.suppress_debug_info = True
    lite.telemetry = False
    # A reply may repeat itself; a count of equal chunks says nothing about it.
    lite.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    # What its callbacks would be told costs a scan and a count of the whole prompt, and there are
    # none.
    lite.disable_token_counter = True
    lite.disable_streaming_logging = True
    # Its log lines repeat the errors that we raise, with headers in them.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # These tell of every request, some with a key in its URL.
    for name in ("httpx", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    handler: Any = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    handler.create_async_transport = staticmethod(_transport)
    lite.sync_transport = SyncWire()
    main: Any = import_module("litellm.main")
    main.base_llm_aiohttp_handler = _aiohttp_handler()
    lite.custom_provider_map = [
        *lite.custom_provider_map,
        {"provider": _scripted.PROVIDER, "custom_handler": _handler(lite)},
    ]
    import_module("litellm.utils").custom_llm_setup()
    quieten(lite)
    shorten_errors()
    return lite


def _transport(
    ssl_context: Any = None, ssl_verify: bool | None = None, **_litellms: Any
) -> AsyncWire:
    """The transport below each asynchronous client that litellm makes, OpenAI's and Azure's
    included. What else litellm would have its own be (HTTP/2, its sessions and pools) is not for
    the wire, whose bytes are archived.
    """
    verify: Verify = ssl_context if ssl_context is not None else ssl_verify is not False
    return AsyncWire(verify)


def _aiohttp_handler() -> Any:
    """litellm's handler for the provider that uses aiohttp itself."""
    from activities._aiohttp_wire import AiohttpWire

    tls = import_module("litellm.llms.custom_httpx.http_handler").get_ssl_configuration()
    return import_module("litellm.llms.custom_httpx.aiohttp_handler").BaseLLMAIOHTTPHandler(
        AiohttpWire(tls)
    )


def _handler(lite: Any) -> Any:
    """The scripted provider in the shape that litellm calls."""

    class Scripted(lite.CustomLLM):  # type: ignore[misc]
        async def acompletion(self, **call: Any) -> Any:
            builder = AnswerBuilder(turn=0)
            async for chunk in self.astreaming(**call):
                builder.add(chunk)
            return _whole(lite, builder.answer())

        async def astreaming(self, **call: Any) -> AsyncIterator[Any]:
            id = f"scripted-{replies_in(call['messages'])}"
            options = {
                n: v
                for n, v in call["optional_params"].items()
                if n not in {"stream", "stream_options"}
            }
            async with aclosing(
                _scripted.pieces(call["model"], call["messages"], options)
            ) as pieces:
                async for piece in pieces:
                    reason = piece.pop("finish_reason", None)
                    choice = {"index": 0, "delta": piece, "finish_reason": reason}
                    yield lite.ModelResponseStream(id=id, model=call["model"], choices=[choice])

    return Scripted()


def _whole(lite: Any, answer: Answer) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.tool_calls
        ]
    if answer.thinking:
        message["thinking_blocks"] = list(answer.thinking)
    if answer.refusal:
        message["provider_specific_fields"] = {"refusal": answer.refusal}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return lite.ModelResponse(id=answer.response_id, choices=[choice])
