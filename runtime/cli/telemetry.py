"""Where a worker's metrics are served: off unless an address is given.

The SDK's core serves Temporal's metrics and Holdfast's own at ``http://ADDRESS/metrics`` in
Prometheus' text format.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from runtime.base.errors import InputError

if TYPE_CHECKING:
    from temporalio.runtime import PrometheusConfig

VARIABLE = "HOLDFAST_METRICS"
"""The environment variable that names the address."""

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[0-9.]+):(?P<port>[0-9]{1,5})")
_MOST_PORT = 65_535

CALL_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
"""Borders of the histograms of calls: models answer in seconds, some in minutes."""

CALL_TOKENS = (64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)


def metrics_address(given: str | None = None) -> str | None:
    """The address to serve metrics at: the given one, else ``HOLDFAST_METRICS``; None for nowhere.

    Raises:
        InputError: if it is not an IP address and a port.
    """
    address = given or os.environ.get(VARIABLE) or None
    if address is None:
        return None
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) <= _MOST_PORT:
        raise InputError(
            f"{'--metrics' if given else VARIABLE} {address!r}: expected an IP address and a port,"
            " such as 127.0.0.1:9464"
        )
    return address


def exporter(address: str) -> PrometheusConfig:
    """How the SDK serves metrics there: seconds, and names as Prometheus wants them."""
    from temporalio.runtime import PrometheusConfig

    from activities.metered import DURATION, TOKENS

    return PrometheusConfig(
        bind_address=address,
        counters_total_suffix=True,
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides={DURATION: CALL_SECONDS, TOKENS: CALL_TOKENS},
    )
