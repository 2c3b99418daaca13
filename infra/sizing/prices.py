"""Prices by name, each with where it was read and when. They are defaults: check them, and give
your own by ``--price NAME=USD``.

What no source could be read for has no price, and is told as not counted: models, machines,
a database's disks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

READ = "2026-11-22"
_TEMPORAL = (
    f"docs.temporal.io/cloud/pricing, as temporalio/documentation had it at 0217b71, read {READ}"
)
_S3 = (
    f"us-east-1, as devnotes.tech told it (understanding-aws-s3-pricing), read {READ};"
    " not read at aws.amazon.com/s3/pricing itself"
)

ACTION_TIERS = (
    (5e6, 50.0),
    (10e6, 45.0),
    (20e6, 40.0),
    (50e6, 35.0),
    (100e6, 30.0),
    (200e6, 25.0),
)
"""Dollars for a million Actions, up to so many a month; beyond the last they are agreed upon, and
counted here as the last.
"""


@dataclass(frozen=True)
class Price:
    """US dollars for one ``unit``; None where nothing is known."""

    usd: float | None
    unit: str
    source: str


_UNKNOWN = "none: yours"

DEFAULTS: Mapping[str, Price] = {
    "million_actions": Price(None, "million Actions", f"by tiers of {_TEMPORAL}"),
    "active_gbh": Price(0.042, "GB-hour of open histories", _TEMPORAL),
    "retained_gbh": Price(0.00105, "GB-hour of closed histories", _TEMPORAL),
    "s3_write": Price(0.005 / 1000, "PUT or LIST", _S3),
    "s3_read": Price(0.0004 / 1000, "GET", _S3),
    "s3_gb_month": Price(0.023, "GB-month", _S3),
    "vcpu_hour": Price(None, "hour of a worker's core", _UNKNOWN),
    "gib_hour": Price(None, "hour of a worker's GiB of memory", _UNKNOWN),
    "database_gb_month": Price(None, "GB-month of a database of your own", _UNKNOWN),
    "million_prompt_tokens": Price(None, "million tokens of prompts", _UNKNOWN),
    "million_completion_tokens": Price(None, "million tokens of replies", _UNKNOWN),
}


def actions_usd(actions: float, flat: float | None = None) -> float:
    """What a month's Actions cost: by tiers, or ``flat`` dollars a million."""
    if flat is not None:
        return actions / 1e6 * flat
    total = below = 0.0
    for most, usd in ACTION_TIERS:
        # A tier prices what lies within it, and nothing below.
        total += max(min(actions, most) - below, 0) / 1e6 * usd
        below = most
    return total + max(actions - below, 0) / 1e6 * ACTION_TIERS[-1][1]
