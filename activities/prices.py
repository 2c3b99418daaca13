"""Prices and windows of models, from the table that litellm ships. litellm itself is not imported:
that takes seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from runtime.base.values import Usage
from runtime.projection.prices import Prices

_FILE = "model_prices_and_context_window_backup.json"

ANTHROPIC_MARKS = 4
"""Breakpoints that a request to Anthropic's API may have."""

_MILLION = 1_000_000

_PER_TOKEN = re.compile(
    r"(input_cost|output_cost|cache_creation_input_token_cost)(?:_per(?:_reasoning)?_token)?"
    r"(?:_above_(\d+)k_tokens)?(?:_([a-z]+))?"
)
"""The table's names for prices of tokens, with the length of prompts from which on some hold, and
the provider's tier of service for which some do.
"""

_TIERS = {
    "flex": "flex",
    "balanced": "balanced",
    "priority": "priority",
    "fast": "priority",
    "ultrafast": "ultrafast",
}
"""The tiers of service that can be asked for, by what the table calls their prices."""


@dataclass(frozen=True)
class PerToken:
    """US dollars of one token of a prompt, and of a reply."""

    prompt: float
    reply: float


class Price(BaseModel):
    """What a model's tokens cost by its jobs file, in US dollars per million; cached ones as others
    unless it says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)

    def cost(self, usage: Usage) -> float:
        """The price of a call in US dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        # Nothing at least: a provider's figures need not fit each other.
        plain = max(usage.prompt - usage.cache_read - usage.cache_write, 0)
        total = plain * self.input + usage.cache_read * read + usage.cache_write * write
        return (total + usage.completion * self.output) / _MILLION

    def dearest(self) -> PerToken:
        """The most that one token may cost."""
        prompt = max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)
        return PerToken(prompt / _MILLION, self.output / _MILLION)

    def prices(self, marks: int) -> Prices:
        """The same as what projection weighs."""
        if not self.input:
            return Prices(marks=marks)
        read = 1.0 if self.cache_read is None else round(self.cache_read / self.input, 6)
        write = (
            1.0 if self.cache_write is None else max(round(self.cache_write / self.input, 6), 1.0)
        )
        return Prices(usd=self.input / _MILLION, read=read, write=write, marks=marks)


_NO_CACHE = Prices(read=1.0, write=1.0)


@lru_cache(maxsize=64)
def prices_of(model: str, own: Price | None = None) -> Prices:
    """The prices of a litellm model name, or its ``own``; relations alone for a model that the
    table does not have.

    A model that the table knows and prices no cache for has none: its tokens cost the same wherever
    they stand.
    """
    if own is not None:
        return own.prices(ANTHROPIC_MARKS if _marks(model, _entry(model)) else 0)
    entry = _entry(model)
    marks = ANTHROPIC_MARKS if _marks(model, entry) else 0
    usd = entry.get("input_cost_per_token")
    if not usd:
        return Prices(marks=marks)
    read, write = (
        entry.get("cache_read_input_token_cost"),
        entry.get("cache_creation_input_token_cost"),
    )
    if read is None:
        return _NO_CACHE.model_copy(update={"usd": float(usd)})
    return Prices(
        usd=float(usd),
        read=round(read / usd, 6),
        write=max(round((write or 0) / usd, 6), 1.0),
        marks=marks,
    )


@lru_cache(maxsize=256)
def dearest(model: str, own: Price | None, window: int, tier: str | None = None) -> PerToken:
    """The most that a token of a call may cost, whose prompt and reply have ``window`` tokens
    together: as if all of the prompt were written to the cache and all of the reply were thoughts,
    by the price of long prompts, and of the ``tier`` of service or of none.

    Nothing for a model that the table has no price of, which the ledger books as nothing too.
    """
    if own is not None:
        return own.dearest()
    prompt = reply = 0.0
    for name, value in _rates(_entry(model), window):
        match = _PER_TOKEN.fullmatch(name)
        if match is None or not isinstance(value, int | float):
            continue
        kind, above, of_tier = match.groups()
        # A price of long prompts counts only for a call that may become so long.
        if above is not None and window <= int(above) * 1_000:
            continue
        # Of no tier always: a provider may serve a call so that it has no place for in another.
        if of_tier is not None and of_tier != _TIERS.get(tier or ""):
            continue
        if kind == "output_cost":
            reply = max(reply, float(value))
        else:
            prompt = max(prompt, float(value))
    return PerToken(prompt, reply)


def _rates(entry: dict[str, Any], window: int) -> Iterator[tuple[str, Any]]:
    """All prices of an entry, with those that it has by the length of prompts, up to ``window``."""
    yield from entry.items()
    for part in entry.get("tiered_pricing") or ():
        if part["range"][0] < window:
            yield from part.items()


def most_reply_of(model: str) -> int | None:
    """The most tokens that the model's replies may have, as far as the table says."""
    most = _entry(model).get("max_output_tokens")
    return most if isinstance(most, int) and most > 0 else None


def mode_of(model: str) -> str | None:
    """What the table says that a model is for, such as ``chat`` or ``embedding``; None where it
    does not say.
    """
    mode = _entry(model).get("mode")
    return mode if isinstance(mode, str) else None


def has_price(model: str) -> bool:
    """Whether the table has a price of the model; one that costs nothing has."""
    return any(
        name.startswith(("input_cost", "output_cost"))
        for name, value in _rates(_entry(model), 1)
        if value is not None
    )


def window_of(model: str) -> int | None:
    """The most tokens that the model's prompts may have, as far as the table says."""
    window = _entry(model).get("max_input_tokens")
    return window if isinstance(window, int) else None


def streams(model: str) -> bool:
    """Whether the model's provider can stream its replies, as far as the table says."""
    return _entry(model).get("supports_native_streaming") is not False


def _entry(model: str) -> dict[str, Any]:
    table = _table()
    # Many names stand in the table without their provider.
    entry = table.get(model) or table.get(model.partition("/")[2])
    return dict(entry) if isinstance(entry, dict) else {}


def _marks(model: str, entry: dict[str, Any]) -> bool:
    """Whether the model is reached by a protocol that takes Anthropic's breakpoints from
    litellm.
    """
    provider = str(entry.get("litellm_provider", ""))
    return model.startswith("anthropic/") or provider in {"anthropic", "vertex_ai-anthropic_models"}


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / _FILE
    table: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return table
