"""What a month of a load costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infra.sizing.model import MONTH_DAYS, Need
from infra.sizing.prices import DEFAULTS, Price, actions_usd

GB = 1e9
GIB = 2**30
MONTH_HOURS = 24 * MONTH_DAYS


@dataclass(frozen=True)
class Item:
    """One thing that is paid for in a month; ``usd`` is None where it has no price."""

    name: str
    usd: float | None


def month(need: Need, own: Mapping[str, float]) -> list[Item]:
    """A month of 30 days, where the archive has all that it will ever keep. ``own`` are prices in
    place of the defaults.
    """
    usd = {name: price.usd for name, price in DEFAULTS.items()} | dict(own)

    def times(name: str, amount: float) -> float | None:
        price = usd[name]
        return None if price is None else price * amount

    days, hours = MONTH_DAYS, MONTH_HOURS
    # Each hour of the month has the same: as much comes in as the retention takes away.
    closed = need.database_bytes / GB * hours
    return [
        Item(
            "Temporal Cloud: Actions",
            actions_usd(need.actions_a_day * days, usd["million_actions"]),
        ),
        Item(
            "Temporal Cloud: open histories",
            times("active_gbh", need.open_history_bytes / GB * hours),
        ),
        Item("Temporal Cloud: closed histories", times("retained_gbh", closed)),
        Item("or a database of your own", times("database_gb_month", need.database_bytes / GB)),
        Item("S3: PUT and LIST", times("s3_write", need.s3_writes_a_day * days)),
        Item("S3: GET", times("s3_read", need.s3_reads_a_day * days)),
        Item("S3: storage", times("s3_gb_month", need.archive_bytes / GB)),
        Item("workers: processors", times("vcpu_hour", need.worker_processes * hours)),
        Item("workers: memory", times("gib_hour", need.worker_bytes / GIB * hours)),
        Item(
            "models: prompts",
            times("million_prompt_tokens", need.prompt_tokens_a_day * days / 1e6),
        ),
        Item(
            "models: replies",
            times("million_completion_tokens", need.completion_tokens_a_day * days / 1e6),
        ),
    ]


def known(prices: Mapping[str, Price] = DEFAULTS) -> str:
    """The names of prices, for a message."""
    return ", ".join(prices)
