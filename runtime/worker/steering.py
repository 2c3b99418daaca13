"""How a queue's rate follows what its calls use and what the provider says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from runtime.server.rates import LONGEST_SECONDS, Account

WEIGHT = 0.2
"""The weight of a look's calls in the average of what a call uses."""

NO_WORD_SECONDS = 5.0
"""How long a provider is left alone that refuses and does not say for how long."""

_CLOCKS_APART = 60.0
"""By how many seconds the clocks of hosts may differ without one's wish being given up for it."""

CUT, RISE, LEAST_SHARE = 0.7, 1.05, 0.1
"""The part of its rate that a queue keeps after a refusal, by how much it rises again at each look,
and where that ends.
"""

_MOST_CHARS = 64
"""Characters of a header that tells a time; what is longer tells none, and is not searched."""

_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass
class Meter:
    """What the calls of one worker have told since the last look.

    ``quiet`` is how long the provider asked to be left alone, in seconds.
    """

    calls: int = 0
    tokens: int = 0
    refused: int = 0
    quiet: float = 0.0

    def add(self, other: Meter) -> None:
        """What another meter was told."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.refused += other.refused
        self.quiet = max(self.quiet, other.quiet)

    def used(self, tokens: int) -> None:
        """A call was answered."""
        self.calls += 1
        self.tokens += tokens

    def refuse(self, seconds: float | None) -> None:
        """A call was refused for its rate."""
        self.refused += 1
        self.quiet = max(self.quiet, NO_WORD_SECONDS if seconds is None else seconds)

    def hear(self, headers: Mapping[str, str], now: float) -> None:
        """What a reply's headers say is left of the account's rate."""
        told = {name.lower(): value for name, value in headers.items()}
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            for left, reset in (
                (f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}"),
                (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset"),
            ):
                if told.get(left) == "0":
                    self.quiet = max(self.quiet, seconds_in(told.get(reset, ""), now))


def seconds_in(text: str, now: float) -> float:
    """The seconds from ``now`` on that a header tells: ``6m0s``, ``120ms``, ``2.5``, or a time; 0
    where it tells none.
    """
    if len(text) > _MOST_CHARS:
        return 0.0
    parts = _PART.findall(text)
    try:
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if re.fullmatch(r"[0-9.]+", text):
            return float(text)
        return max(datetime.fromisoformat(text).timestamp() - now, 0.0)
    except ValueError:
        return 0.0


def steered(account: Account, meter: Meter, now: float) -> Account:
    """The account after what a worker's calls have told; a refusal slows all of them."""
    change: dict[str, float] = {}
    # Calls of tools use no tokens, and say nothing of what a call uses.
    if meter.calls and meter.tokens:
        mean = meter.tokens / meter.calls
        known = account.tokens
        change["tokens"] = round(mean if not known else known + WEIGHT * (mean - known), 1)
    known_until = account.slowed_until(now)
    if account.until > now + LONGEST_SECONDS + _CLOCKS_APART:
        # It would hold after all, once time has come there.
        change |= {"until": 0.0, "slow": 0.0}
    if meter.quiet > 0:
        quiet = min(meter.quiet, LONGEST_SECONDS)
        if known_until is None or now + quiet > known_until:
            # Rounded up it would be further ahead than counts.
            until = min(round(now + quiet, 1), now + LONGEST_SECONDS)
            change |= {"until": until, "slow": round(1 / max(quiet, 1.0), 6)}
    if meter.refused:
        change["share"] = max(round(account.share * CUT, 4), LEAST_SHARE)
    # No sooner: while a provider is left alone, nothing shows that it takes more.
    elif known_until is None and account.share < 1.0:
        change["share"] = min(round(account.share * RISE, 4), 1.0)
    return account.model_copy(update=change)
