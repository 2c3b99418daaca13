"""The headers of a response are what its server likes."""

import json

import pytest
from gateway import Gateway
from model_calls import KEY, RUN, Job, readable
from temporalio.exceptions import ApplicationError

from activities._charsets import plain_type
from runtime.archive.allowed import allowed_headers

pytestmark = pytest.mark.usefixtures("litellm")

MODELS = pytest.mark.parametrize(
    "name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "aiohttp_openai/gpt-4o"]
)


def said(name: str) -> bytes:
    """A whole reply of the protocol by which a model is called."""
    if name.startswith("anthropic"):
        content = [{"type": "text", "text": "Hello."}]
        usage = {"input_tokens": 10, "output_tokens": 2}
        message = {"type": "message", "role": "assistant", "content": content, "usage": usage}
        about = {"id": "m-1", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
        return json.dumps({**message, **about}).encode()
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}}
    return json.dumps({"id": "c-1", "choices": [{**choice, "finish_reason": "stop"}]}).encode()


def job_of(address: str, name: str) -> Job:
    """A job whose model is at ``address``."""
    if name.startswith("aiohttp_openai"):
        base = f"{address}/v1/chat/completions"
    else:
        base = address if name.startswith("anthropic") else f"{address}/v1"
    return Job({"name": name, "api_base": base, "api_key": KEY, "stream": False})


@MODELS
@pytest.mark.parametrize(
    "headers",
    [
        {"x-request-id": "café", "x-note": "caf\udce9"},
        {"content-type": "application/json; note=é"},
        {"location": "http://[nowhere"},
        {"location": "//[::1"},
    ],
    ids=str,
)
async def test_no_header_keeps_a_reply_from_being_read(name: str, headers: dict[str, str]) -> None:
    """Text that is not ASCII, bytes that are no text, and places that are none: the reply is paid
    for, and would be asked for again without end.
    """
    async with Gateway(said(name), **headers) as address:
        job = job_of(address, name)
        assert (await job.take_turn()).text == "Hello."
    assert len(job.archive.attempts(RUN, 1)) == 1


@MODELS
@pytest.mark.parametrize("status", [302, 503])
async def test_no_header_keeps_a_failure_from_being_archived(name: str, status: int) -> None:
    """Its attempt counts, as any other that failed."""
    headers = {"location": "http://[nowhere", "x-request-id": "café"}
    async with Gateway(b"Busy.", status=status, **headers) as address:
        job = job_of(address, name)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert not failed.value.non_retryable
    # Where a redirect is followed, that is another request.
    *_, attempt = job.archive.attempts(RUN, 1)
    assert job.archive.failure(attempt.key) is not None
    assert "[masked]" in readable(job.store).decode()


def test_a_place_that_is_no_url_is_masked() -> None:
    """Nobody knows what is secret in it."""
    assert allowed_headers({"Location": "http://[nowhere?key=abc"}) == {"location": "[masked]"}
    assert plain_type("text/plain; charset=utf-8; é") == "text/plain"
