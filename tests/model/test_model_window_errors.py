"""Every provider's own refusal of a prompt that is too long, through litellm and over real HTTP,
asks for a shorter one.
"""

from typing import Any

import pytest
from model_calls import Job
from temporalio.exceptions import ApplicationError

from activities.contracts import ReplyForm
from runtime.archive.forms import Capture
from runtime.job.window import learned_limit
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import ProviderServer
from tests.servers.refusals import REFUSALS, Refusal

pytestmark = pytest.mark.usefixtures("litellm")

TOKENS, WINDOW = 9_000, 8_000
OPTIONS: dict[str, dict[str, str]] = {
    "azure": {"api_version": "2024-10-21"},
    "bedrock": {
        "aws_access_key_id": "x",
        "aws_secret_access_key": "y",
        "aws_region_name": "us-east-1",
    },
    "watsonx": {"token": "x", "project_id": "p"},
}
MODELS = {"bedrock": "converse/anthropic.claude-3-5-sonnet-20240620-v1:0"}


class Refusing(OpenAIProtocol):
    """Answers every request, in whatever provider's form, with one refusal."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        return []

    def error(self, kind: str, message: str) -> Any:
        return self._refusal.body(TOKENS, WINDOW)


@pytest.mark.parametrize(
    "refusal", REFUSALS, ids=lambda refusal: f"{refusal.provider}-{refusal.status}"
)
async def test_a_refusal_is_a_window_error(refusal: Refusal) -> None:
    """Sent once, not retried as it is, archived as it came, and a smaller limit is learned from its
    words.
    """
    fail = {"fail": {"status": refusal.status, "message": "too long"}, "times": 99}
    async with ProviderServer(
        Refusing(refusal), lambda _messages, _number: fail
    ).serving() as server:
        options = OPTIONS.get(refusal.provider, {})
        if refusal.provider == "bedrock":
            options = {**options, "aws_bedrock_runtime_endpoint": server.address}
        name = f"{refusal.provider}/{MODELS.get(refusal.provider, 'm')}"
        # Not every provider's models take tools, and litellm says so before it calls them.
        job = Job(
            {"name": name, "api_base": server.address, "api_key": "key", **options},
            form=ReplyForm.SCRIPT,
        )
        with pytest.raises(ApplicationError) as raised:
            await job.take_turn()
        (exchange,) = server.exchanges
    assert (raised.value.type, raised.value.non_retryable) == ("ContextWindowExceeded", True)
    assert learned_limit(raised.value.message, TOKENS) < WINDOW
    (attempt,) = job.archive.attempts("run-1", 1)
    assert attempt.capture is Capture.WIRE
    assert job.archive.failed_response(attempt.key) == exchange.response
