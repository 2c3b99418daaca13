"""Each way in which litellm reaches a provider is captured and read: one model of each, on the
bytes of its own protocol.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from model_calls import KEY, RUN, Job
from temporalio.exceptions import ApplicationError

from activities.contracts import ReplyForm
from runtime.archive.forms import Capture
from runtime.base.values import Usage
from tests.servers.foreign_server import ARGUMENTS, PROMPT_TOKENS, REPLY_TOKENS, SAID, ForeignServer

pytestmark = pytest.mark.usefixtures("litellm")

Options = Callable[[str], dict[str, Any]]
WITH_TOOLS: list[tuple[str, Options]] = [
    ("gemini/gemini-2.5-pro", lambda at: {"api_base": at}),
    ("ollama_chat/llama3.1", lambda at: {"api_base": at}),
    ("bedrock/amazon.nova-pro-v1:0", lambda at: {"aws_bedrock_runtime_endpoint": at}),
    ("azure/gpt-4o", lambda at: {"api_base": at, "api_version": "2024-10-21"}),
    ("azure_ai/mistral-large", lambda at: {"api_base": at}),
    ("mistral/mistral-large-latest", lambda at: {"api_base": f"{at}/v1"}),
    ("deepseek/deepseek-chat", lambda at: {"api_base": at}),
    ("openrouter/openai/gpt-4o", lambda at: {"api_base": at}),
    ("databricks/some", lambda at: {"api_base": at}),
]
WITHOUT: list[tuple[str, Options]] = [
    ("ollama/llama3.1", lambda at: {"api_base": at}),
    ("codestral/codestral-latest", lambda at: {"api_base": f"{at}/v1"}),
]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Amazon's requests are signed with."""
    for name, value in {
        "ACCESS_KEY_ID": "AKIATEST",
        "SECRET_ACCESS_KEY": "secret",
        "REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.mark.parametrize(
    ("name", "options"), [*WITH_TOOLS, *WITHOUT], ids=[n for n, _ in [*WITH_TOOLS, *WITHOUT]]
)
async def test_a_provider_is_captured_and_read(name: str, options: Options) -> None:
    """Its text, call and usage arrive, after one request whose exact bytes, and the response's, are
    in the archive.
    """
    server, tools = ForeignServer(), (name, options) in WITH_TOOLS
    with server.serving() as address:
        form = ReplyForm.TOOL if tools else ReplyForm.SCRIPT
        job = Job({"name": name, "api_key": KEY, **options(address)}, form=form)
        reply = await job.take_turn()
    if tools:
        assert [json.loads(call.arguments) for call in reply.tool_calls] == [ARGUMENTS]
    assert reply.text == SAID
    assert reply.usage == Usage(prompt=PROMPT_TOKENS, completion=REPLY_TOKENS)
    assert server.exchanges == [
        (job.archive.wire_request(RUN, 1), job.archive.wire_response(RUN, 1))
    ]
    assert job.archive.step(reply.step).capture is Capture.WIRE


async def test_text_completion_without_tools() -> None:
    """OpenAI's old protocol has no tools: with them the call ends at once, unsent; in the form of
    scripts it goes.
    """
    name = "text-completion-openai/gpt-3.5-turbo-instruct"
    server = ForeignServer()
    with server.serving() as address:
        options = {"name": name, "api_key": KEY, "api_base": f"{address}/v1"}
        with pytest.raises(ApplicationError) as failed:
            await Job(options).take_turn()
        assert (failed.value.type, failed.value.non_retryable, server.exchanges) == (
            "BadRequestError",
            True,
            [],
        )
        reply = await Job(options, form=ReplyForm.SCRIPT).take_turn()
    assert reply.text == SAID
    assert len(server.exchanges) == 1
