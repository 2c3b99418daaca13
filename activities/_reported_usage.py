"""The usage that a response states, found in its bytes: also in one that broke off, or that is an
error.

A stream may state it at its beginning and again at its end (Anthropic's does), so the largest
figure of each kind counts. Where a figure is none that a call can have, nothing is taken from it:
the usage is estimated as if none were stated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from activities._captured import CapturedCall
from runtime.base.values import Usage

_PROMPT = ("prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount", "prompt_eval_count")
_COMPLETION = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidatesTokenCount",
    "eval_count",
)
_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"
_GEMINIS_READ, _GEMINIS_THOUGHTS = "cachedContentTokenCount", "thoughtsTokenCount"
"""The first is part of the prompt; the second stands beside the reply's, as a rule."""
_DETAILS = {
    "cached_tokens": ("prompt_tokens_details", "input_tokens_details"),
    "reasoning_tokens": ("completion_tokens_details", "output_tokens_details"),
}
"""Counts of parts of a prompt and of a reply, and where they stand."""

_USAGES = ("usage", "usageMetadata")
DEEPEST = 4
"""Mappings in one another, down to which a usage is looked for."""

_TIER = b'"service_tier"'

MOST = 10**9
"""Tokens of one call that are believed: a thousand times what the longest windows hold."""

_USAGE = re.compile(
    rb"\"(prompt_tokens|input_tokens|promptTokenCount|prompt_eval_count|inputTokens)\"\s*:\s*\d"
)

COUNTS = re.compile(r"(?:tokens|Tokens|TokenCount|eval_count|_requests)$")
"""The names that providers give to counts of tokens, and of searches and other calls of their own
that have a price.
"""


def reports_usage(captured: CapturedCall) -> bool:
    """Whether the provider's response itself states the tokens used; where it does not, litellm
    makes figures up.
    """
    return _USAGE.search(captured.content) is not None


def reported_by(captured: CapturedCall, usage: Any) -> Usage | None:
    """What the provider says that a call used, of which litellm says ``usage``; None if it does
    not, or says what cannot be.
    """
    if not reports_usage(captured):
        # It may say what the reply used alone, which litellm makes nothing of.
        return usage_in(captured.content)
    made = usage_of(usage)
    # litellm drops it where it reads a response through aiohttp, and says that it is nothing.
    return usage_in(captured.content) if made is None or made.total == 0 else made


def usage_of(usage: Any) -> Usage | None:
    """litellm's usage object, whose prompt tokens include those read from and written to the
    provider's cache; None where there is none, or a figure in it cannot be.
    """
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    read = getattr(details, "cached_tokens", None) or getattr(
        usage, "cache_read_input_tokens", None
    )
    written = getattr(usage, "cache_creation_input_tokens", None) or getattr(
        details, "cache_creation_tokens", None
    )
    taken = (usage.prompt_tokens or 0, usage.completion_tokens or 0, read or 0, written or 0)
    # The others count too: litellm's price is made of them.
    if not all(map(_is_count, (*taken, *_figures(usage)))):
        return None
    said = getattr(usage, "completion_tokens_details", None)
    thoughts = getattr(said, "reasoning_tokens", None) or 0
    return _made_of(*map(int, (*taken, thoughts)))


def usage_in(body: bytes) -> Usage | None:
    """What a response says that it used, None if it does not, or says what cannot be."""
    stated = [usage for value in _documents(body) for usage in _usages(value, 0)]
    if not stated or not all(_is_count(figure) for usage in stated for figure in _figures(usage)):
        return None
    prompt = max(_first(usage, _PROMPT) for usage in stated)
    completion = max(map(_replied, stated))
    read, written = (max(_first(usage, (name,)) for usage in stated) for name in (_READ, _WRITTEN))
    if any(
        name in usage for usage in stated for name in (_READ, _WRITTEN) if "input_tokens" in usage
    ):
        # Anthropic counts what its cache holds beside the prompt's other tokens.
        prompt += read + written
    cached, thoughts = (
        max(
            _first(details, (count,))
            for usage in stated
            for name in names
            if isinstance(details := usage.get(name) or {}, dict)
        )
        for count, names in _DETAILS.items()
    )
    of_gemini = max(_first(usage, (_GEMINIS_READ,)) for usage in stated)
    return _made_of(prompt, completion, max(read, cached, of_gemini), written, thoughts)


def _replied(usage: dict[str, Any]) -> int:
    """The tokens of a reply by one usage, with its thoughts, as litellm counts them too."""
    said, thoughts = _first(usage, _COMPLETION), _first(usage, (_GEMINIS_THOUGHTS,))
    rest = said + _first(usage, _PROMPT) + _first(usage, ("toolUsePromptTokenCount",))
    total = _first(usage, ("totalTokenCount",))
    # Where all but the thoughts come to the total, they are among the reply's.
    return said if total and rest == total else said + thoughts


def is_told_early(body: bytes) -> bool:
    """Whether a stream of Anthropic's messages says what its reply used where it begins alone, when
    nothing of it was written.
    """
    said = [value for value in _documents(body) if isinstance(value, dict)]
    ends = [value for value in said if value.get("type") == "message_delta"]
    told = (usage.get("output_tokens") for value in ends for usage in _usages(value, 0))
    begins = any(value.get("type") == "message_start" for value in said)
    return begins and not any(figure for figure in told if _is_count(figure))


def _made_of(prompt: int, completion: int, read: int, written: int, thoughts: int) -> Usage:
    """The usage with these figures.

    A part that is more than the whole stands beside it, as some count: then that is an estimate.
    """
    cache, known = read + written, True
    if cache > prompt:
        prompt, known = prompt + cache, False
    if thoughts > completion:
        completion, known = completion + thoughts, False
    return Usage(
        prompt=prompt, completion=completion, cache_read=read, cache_write=written, reported=known
    )


def tier_in(body: bytes) -> str | None:
    """The tier of service that a response of OpenAI's protocols says it was served in: litellm
    drops it where it streams.
    """
    if _TIER not in body:
        return None
    # The last one counts, which most of a stream's events need not be read for.
    for part in [body] if body.lstrip().startswith(b"{") else reversed(body.splitlines()):
        if _TIER in part:
            with suppress(ValueError, RecursionError, AttributeError):
                value = json.loads(part.removeprefix(b"data:"))
                tier = (value.get("response") or value).get("service_tier")
                if isinstance(tier, str):
                    return tier
    return None


def _documents(body: bytes) -> Iterator[Any]:
    """The JSON objects of a response: all of it, or those of a stream's lines."""
    # A whole response first: one that is printed over several lines has lines that are no JSON.
    with suppress(ValueError, RecursionError):
        yield json.loads(body)
        return
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if data.startswith(b"{"):
            with suppress(ValueError, RecursionError):
                yield json.loads(data)


def _usages(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The mappings under the names that providers give them, not far below the top."""
    # A reply's own JSON may have such names, deep down in its arguments.
    if not isinstance(value, dict) or depth > DEEPEST:
        return
    if "prompt_eval_count" in value:
        yield value
    for name, part in value.items():
        if name in _USAGES and isinstance(part, dict):
            yield part
        else:
            yield from _usages(part, depth + 1)


def _figures(usage: Any, depth: int = 0) -> Iterator[Any]:
    """The counts in what a response, or litellm, says of a usage, with its details."""
    if isinstance(usage, dict | BaseModel) and depth <= DEEPEST:
        for name, value in dict(usage).items():
            if isinstance(value, int | float | str) and COUNTS.search(name):
                yield value
            else:
                yield from _figures(value, depth + 1)


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= MOST and value == int(value)


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    numbers = (usage.get(name) for name in names)
    # Some servers write whole numbers as 12.0.
    return next((int(n) for n in numbers if isinstance(n, int | float) and n is not True), 0)
