"""Whether a call's worst case fits into what its job has left, and how long its reply may then be.

The worst case is the whole prompt, at the dearest price that its tokens may have, and the longest
reply that was asked for or that the model gives. A reply is asked to be shorter where less is left,
so that the last call of a job still has what there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from temporalio.exceptions import ApplicationError

from activities._options import ModelOptions
from activities.contracts import BUDGET_SHORT, Left
from activities.prices import dearest, most_reply_of
from runtime.base.plurals import counted
from runtime.base.spec.models import SCRIPTED, Amount
from runtime.base.values import Failed

LEAST_REPLY = 256
"""Tokens below which a reply is not asked for: a statement, and what ends a job, has some ten."""

ASSUMED_REPLY = 32_000
"""The longest reply of a model of which the table says nothing."""

_OWN_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""The names of a reply's limit among litellm's arguments, the one that counts first."""


def in_budget(
    options: ModelOptions, prompt: int, left: Left, failed: Failed, booked: Failed
) -> ModelOptions:
    """The options of a call with a prompt of ``prompt`` tokens, whose worst case fits into what is
    ``left`` after the attempts that ``failed``; those that are ``booked`` are out of it already.

    Raises:
        ApplicationError: ``BudgetShort``, if no reply fits; its message is the reason, its details
            are what failed and the ``Amount`` that the call would need.
    """
    name, most = _asked(options.arguments) or ("max_tokens", None)
    longest = most or most_reply_of(options.name) or ASSUMED_REPLY
    tokens = left.tokens - failed.usage.total
    usd = left.usd - failed.cost_usd
    price = dearest(options.name, options.price, prompt + longest, options.tier)
    room = tokens - prompt
    if price.reply > 0:
        # The millionth is for what a sum of floats lacks: a reply that fits exactly is asked for.
        # And where the prompt alone is too dear there is none, however little a reply costs.
        room = int(min(room, max(usd - prompt * price.prompt, 0.0) / price.reply + 1e-6))
    elif usd < prompt * price.prompt:
        room = 0
    # A model that has to think needs room for that first; one of short replies needs no more than
    # it can give.
    least = min(LEAST_REPLY + _thinking(options.arguments), longest)
    if room < least:
        cost = prompt * price.prompt + least * price.reply
        raise ApplicationError(
            _short(prompt, least, tokens, usd, cost),
            booked + failed,
            # Rounded up, so that what is then granted holds the call.
            Amount(tokens=prompt + least, usd=math.ceil(cost * 1e6 - 1e-6) / 1e6),
            type=BUDGET_SHORT,
            non_retryable=True,
        )
    # Unasked where nothing is short: the request stays as the job's options have it. And a script's
    # replies are as long as it says.
    if room >= longest or options.name.startswith(SCRIPTED):
        return options
    return options.model_copy(update={name: room})


def _asked(arguments: Mapping[str, Any]) -> tuple[str, int] | None:
    """The reply's limit that a job's options ask for."""
    for name in _OWN_LIMITS:
        if isinstance(most := arguments.get(name), int) and most > 0:
            return name, most
    return None


def _thinking(arguments: Mapping[str, Any]) -> int:
    """The tokens that a model is told to think with: the provider wants the limit above them."""
    thinking = arguments.get("thinking")
    tokens = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return tokens if isinstance(tokens, int) else 0


def _short(prompt: int, reply: int, tokens: int, usd: float, cost: float) -> str:
    """Why there is no call, in what is short."""
    what = f"a prompt of {counted(prompt, 'token')} and a reply of {reply}"
    if tokens - prompt < reply:
        return f"{what} would be more than the {counted(max(tokens, 0), 'token')} left"
    return f"{what} may cost ${cost:.4f}, and ${max(usd, 0.0):.4f} is left"
