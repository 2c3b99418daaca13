"""What releases of litellm newer than the one of ``requirements.lock`` hand over: 1.110 does."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from activities._answer import AnswerBuilder
from activities._litellm_library import library
from activities._wire import AsyncWire


def test_the_wire_takes_what_is_meant_for_litellms_own() -> None:
    """It is what every client goes through, whatever litellm would have had its transport do."""
    library()
    http: Any = import_module("litellm.llms.custom_httpx.http_handler")
    wire = http.AsyncHTTPHandler.create_async_transport(
        ssl_context=None, ssl_verify=False, shared_session=None, http2=True, cert=None, limits=None
    )
    assert isinstance(wire, AsyncWire)


def test_a_thinking_block_goes_back_as_its_provider_gave_it() -> None:
    """Where it stood in the reply is no field of Anthropic's, which refuses fields of others."""
    block = {"type": "thinking", "thinking": "First", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "eA=="}
    noted = [{**one, "index": place} for place, one in enumerate((block, redacted))]
    message = SimpleNamespace(content="", thinking_blocks=noted)
    builder = AnswerBuilder(turn=1)
    builder.add(SimpleNamespace(choices=[SimpleNamespace(delta=message, finish_reason="stop")]))
    assert builder.answer().thinking == (block, redacted)
