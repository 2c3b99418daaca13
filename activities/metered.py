"""What model calls take, as metrics: by the names of OpenTelemetry's conventions for generative AI
where those have one.

Units are words, since the SDK's core puts them into names: of the conventions' own ``s`` and
``{token}`` it makes names that nobody knows, or none. The metrics go through the SDK's meter,
beside Temporal's; where none are exported it does nothing. Workflow code counts nothing, so
histories are the same with metrics and without.

Source: opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics.
"""

from __future__ import annotations

import time
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.contracts import TurnCall, TurnReply

TOKENS = "gen_ai_client_token_usage"
"""A histogram of tokens a call, by ``gen_ai_token_type``."""

DURATION = "gen_ai_client_operation_duration"
"""A histogram of seconds a turn's call takes, its place in the archive included."""

TURNS = "holdfast_turns"
"""Turns that a model has answered."""

COST = "holdfast_cost_micro_usd"
"""What they cost, in millionths of a dollar: the SDK's counters hold whole numbers."""

CACHED = "holdfast_cached_tokens"
"""Prompt tokens that the provider read from its cache."""

FAILED = "holdfast_failed_calls"
"""Attempts at a turn's call that raised."""

_MOST = 2**63 - 1
"""What the SDK's meters hold; they raise for more, and for less than nothing."""


class Metered(Interceptor):
    """Counts each turn's model call, by model."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Counted(next)


class _Counted(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        call = input.args[0] if input.args else None
        if not isinstance(call, TurnCall):
            return await self.next.execute_activity(input)
        about = {
            "gen_ai_operation_name": "chat",
            "gen_ai_request_model": str(call.model.get("name", "")),
        }
        began = time.monotonic()
        try:
            reply = await self.next.execute_activity(input)
        except Exception:
            _meter().create_counter(FAILED, "Attempts that raised").add(1, about)
            raise
        if isinstance(reply, TurnReply):
            _count(reply, time.monotonic() - began, about)
        return reply


def _count(reply: TurnReply, seconds: float, about: dict[str, Any]) -> None:
    meter, usage = _meter(), reply.usage
    meter.create_histogram_float(DURATION, "A turn's model call", "seconds").record(seconds, about)
    tokens = meter.create_histogram(TOKENS, "Tokens of a model call")
    for kind, count in (("input", usage.prompt), ("output", usage.completion)):
        tokens.record(_held(count), {**about, "gen_ai_token_type": kind})
    meter.create_counter(TURNS, "Turns that a model has answered").add(1, about)
    meter.create_counter(CACHED, "Prompt tokens from a cache").add(_held(usage.cache_read), about)
    meter.create_counter(COST, "Cost").add(_held(reply.cost_usd * 1e6), about)


def _held(figure: float) -> int:
    # The turn is archived by now, and may be one of a release that took any figure of a provider.
    return round(min(figure, _MOST)) if figure > 0 else 0


def _meter() -> Any:
    return activity.metric_meter()
