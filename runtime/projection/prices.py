"""What prompt tokens cost, as data: plain, read from a provider's cache, written to it
(docs/design.md section 7).
"""

from __future__ import annotations

from pydantic import Field

from runtime.base.values import Compact


class Prices(Compact):
    """US dollars of one plain prompt token, and what cached ones cost in relation to it.

    ``usd`` is 0 for a model without a known price: then the relations are those that both large
    vendors have. ``marks`` is how many breakpoints of its cache a request may name; 0 for providers
    that find them themselves, or have no cache.
    """

    usd: float = Field(default=0.0, ge=0)
    read: float = Field(default=0.1, ge=0)
    write: float = Field(default=1.25, ge=0)
    marks: int = Field(default=0, ge=0)

    @property
    def rewrite(self) -> float:
        """What it costs more to write a token to the cache than to read it from there."""
        # Where nothing is cached both are the plain price, and a rewrite costs nothing.
        return max(self.write - self.read, 0.0)


def prompt_cost(prices: Prices, *, stable: int, new: int, tail: int) -> float:
    """The price of a prompt in plain tokens: ``stable`` are read, ``new`` written, and the ``tail``
    is never cached.
    """
    return stable * prices.read + new * prices.write + tail
