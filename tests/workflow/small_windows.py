"""Local HTTP models with a small window, which refuse longer prompts with their provider's real
errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from runtime.base.tokens import encoding
from tests.servers.anthropic_server import AnthropicProtocol
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import Protocol, ProviderServer
from tests.servers.refusals import REFUSALS, Refusal

WINDOW = 8_000
REFUSED = "refused: "
"""What the policy tells its protocol: the prompt's size and the window follow."""

count = encoding("cl100k_base").count
Messages = list[dict[str, Any]]
_TURN = re.compile(r"\[budget: turn (\d+) of")


class OpenAIWindow(OpenAIProtocol):
    """OpenAI's protocol, in which a prompt that is too long is refused as ``refusal`` says: any
    provider's status and body.
    """

    def __init__(self, refusal: Refusal = REFUSALS[0]) -> None:
        self.refusal = refusal

    def error(self, kind: str, message: str) -> Any:
        if not message.startswith(REFUSED):
            return super().error(kind, message)
        tokens, window = (int(number) for number in message.removeprefix(REFUSED).split())
        return self.refusal.body(tokens, window)


class AnthropicWindow(AnthropicProtocol):
    """Anthropic's."""

    refusal = next(refusal for refusal in REFUSALS if refusal.provider == "anthropic")

    def error(self, kind: str, message: str) -> Any:
        if not message.startswith(REFUSED):
            return super().error(kind, message)
        tokens, window = (int(number) for number in message.removeprefix(REFUSED).split())
        return self.refusal.body(tokens, window)


@dataclass
class SmallWindow:
    """A model that writes ``statement(turn)`` and, asked for a summary, ``summary(number)``; it
    keeps the sizes it was sent.

    With ``cut_off`` it refuses no prompt that is too long: its reply is empty, for it has no room.
    """

    statement: Callable[[int], Any]
    summary: Callable[[int], Any] = lambda number: (
        f"Summary {number}: the numbers so far were printed and kept in `seen`."
    )
    window: int = WINDOW
    protocol: OpenAIWindow | AnthropicWindow = field(default_factory=OpenAIWindow)
    stream: bool = False
    cut_off: bool = False
    sizes: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    prompts: list[Messages] = field(default_factory=list)
    server: ProviderServer | None = None

    def serving(self) -> AbstractAsyncContextManager[ProviderServer]:
        """The server, until the end of the block."""
        protocol: Protocol = self.protocol
        self.server = ProviderServer(protocol, self._answer)
        return self.server.serving()

    @property
    def model(self) -> tuple[str, dict[str, Any]]:
        """The name and the options that reach it."""
        assert self.server is not None
        if isinstance(self.protocol, OpenAIProtocol):
            return "openai/local", {
                "api_base": f"{self.server.address}/v1",
                "api_key": "sk-local",
                "stream": self.stream,
            }
        return "anthropic/claude-sonnet-4-5", {
            "api_base": self.server.address,
            "api_key": "sk-local",
            "stream": self.stream,
        }

    def _answer(self, messages: Messages, number: int) -> Any:
        text = "\n".join(_text_of(message) for message in messages)
        tokens = count(text)
        if tokens > self.window:
            self.refused.append(tokens)
            if self.cut_off:
                return {"text": "", "finish_reason": "length"}
            words = f"{REFUSED}{tokens} {self.window}"
            return {
                "fail": {"status": self.protocol.refusal.status, "message": words},
                "times": 10**6,
            }
        if "Write a summary of the stretch" in text:
            self.summaries.append(tokens)
            return self.summary(len(self.summaries))
        self.sizes.append(tokens)
        self.prompts.append(messages)
        return self.statement(int(_TURN.findall(text)[-1]))


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return said + json.dumps(message.get("tool_calls", ""))
