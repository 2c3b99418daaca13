"""Where a worker's metrics are served, and where its traces are sent: both off unless an address
is given.

The SDK's core serves Temporal's metrics and Holdfast's own at ``http://ADDRESS/metrics`` in
Prometheus' text format. Traces go to a collector by OpenTelemetry's protocol over HTTP.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runtime.base.errors import InputError
from runtime.base.installation import installing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from temporalio.runtime import PrometheusConfig

VARIABLE = "HOLDFAST_METRICS"
"""The environment variable that names the address."""

TRACES = "HOLDFAST_TRACES"
"""The environment variable that names the collector of traces."""

_ends: set[Callable[[], None]] = set()
"""What sends the last traces, once some are sent: most commands load nothing for that."""

_TRACES_PATH = "/v1/traces"

_INSTALL = installing("traces")

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[0-9.]+):(?P<port>[0-9]{1,5})")
_MOST_PORT = 65_535

CALL_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
"""Borders of the histograms of calls: models answer in seconds, some in minutes."""

CALL_TOKENS = (64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)


def metrics_address(option: str | None = None) -> str | None:
    """The address to serve metrics at: the given one, else ``HOLDFAST_METRICS``; None for nowhere.

    Raises:
        InputError: if it is not an IP address and a port.
    """
    address = option or os.environ.get(VARIABLE) or None
    if address is None:
        return None
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) <= _MOST_PORT:
        raise InputError(
            f"{'--metrics' if option else VARIABLE} {address!r}: expected an IP address and a port,"
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


def traces_endpoint() -> str | None:
    """The URL that traces are sent to, by ``HOLDFAST_TRACES``; None for nowhere.

    Raises:
        InputError: if it is not the URL of a collector, or what sends traces is not installed.
    """
    url = os.environ.get(TRACES)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        there = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        there = False
    # Not told back whole: a password may stand in it.
    if not there or parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            f"{TRACES}: expected the URL of a collector, such as http://127.0.0.1:4318, with no"
            " user, query or fragment (OTEL_EXPORTER_OTLP_HEADERS has headers)"
        )
    if not _can_send():
        raise InputError(f"{TRACES} is set, and OpenTelemetry is not installed: {_INSTALL}")
    base = url.rstrip("/")
    return base if base.endswith(_TRACES_PATH) else base + _TRACES_PATH


def _can_send() -> bool:
    # It imports what stands above a module, and raises where that is missing.
    try:
        return all(map(find_spec, ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")))
    except ModuleNotFoundError:
        return False


def begin_traces(provider: TracerProvider | None = None) -> bool:
    """Have this process send traces, through the ``provider`` if one is given, else if
    ``HOLDFAST_TRACES`` asks for it; whether it does.

    Raises:
        InputError: as ``traces_endpoint``; if the provider is none, or not the first.
    """
    if provider is not None:
        _check(provider)
        from activities import tracing

        tracing.begin_with(provider)
        _ends.add(tracing.end)
        return True
    endpoint = traces_endpoint()
    if endpoint is None:
        return False
    from activities import tracing

    tracing.begin(endpoint)
    _ends.add(tracing.end)
    return True


def _check(provider: object) -> None:
    if not _can_send():
        raise InputError(
            f"tracer_provider is given, and OpenTelemetry is not installed: {_INSTALL}"
        )
    from opentelemetry.sdk.trace import TracerProvider

    if not isinstance(provider, TracerProvider):
        raise InputError(
            "tracer_provider: expected a TracerProvider of opentelemetry.sdk.trace, got"
            f" {type(provider).__name__}"
        )


def flush_traces() -> None:
    """Send what there is of traces, if any are sent, and wait for it a little."""
    from activities import tracing

    tracing.flush()


def end_traces() -> None:
    """Send what is left of the traces, if any are sent, and wait for it a little."""
    for end in _ends:
        end()
