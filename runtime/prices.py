"""Prices of models, from the table that litellm ships. litellm itself is not imported: that takes seconds."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runtime.projection.prices import Prices

_FILE = "model_prices_and_context_window_backup.json"

ANTHROPIC_MARKS = 4
"""Breakpoints that a request to Anthropic's API may have."""

_NO_CACHE = Prices(read=1.0, write=1.0)


@lru_cache(maxsize=64)
def prices_of(model: str) -> Prices:
    """The prices of a litellm model name; relations alone for a model that the table does not have.

    A model that the table knows and prices no cache for has none: its tokens cost the same wherever they stand.
    """
    entry = _entry(model)
    marks = ANTHROPIC_MARKS if _marks(model, entry) else 0
    usd = entry.get("input_cost_per_token")
    if not usd:
        return Prices(marks=marks)
    read, write = entry.get("cache_read_input_token_cost"), entry.get("cache_creation_input_token_cost")
    if read is None:
        return _NO_CACHE.model_copy(update={"usd": float(usd)})
    return Prices(usd=float(usd), read=round(read / usd, 6), write=max(round((write or 0) / usd, 6), 1.0), marks=marks)


def streams(model: str) -> bool:
    """Whether the model's provider can stream its replies, as far as the table says."""
    return _entry(model).get("supports_native_streaming") is not False


def _entry(model: str) -> dict[str, Any]:
    table = _table()
    found = table.get(model) or table.get(model.partition("/")[2])
    return dict(found) if isinstance(found, dict) else {}


def _marks(model: str, entry: dict[str, Any]) -> bool:
    """Whether the model is reached by a protocol that takes Anthropic's breakpoints from litellm."""
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
