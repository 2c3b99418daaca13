"""Whether this process sends traces. Nothing of OpenTelemetry is loaded where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio.worker import Interceptor

from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from activities.traced import Traces

_begun: list[Traces] = []
"""At most one: a process has one place for them."""


def begin(endpoint: str) -> None:
    """Send traces to ``endpoint`` from now on, the whole URL; the second call does nothing."""
    if not _begun:
        from activities.traced import Traces

        _begun.append(Traces.to(endpoint))


def begin_with(provider: TracerProvider) -> None:
    """Give traces to ``provider`` from now on; given again, it does nothing.

    Raises:
        InputError: if this process's go elsewhere already.
    """
    if not _begun:
        from activities.traced import Traces

        _begun.append(Traces.through(provider))
    if _begun[0].provider is not provider:
        raise InputError(
            "tracer_provider: this process sends its traces elsewhere already; a process has one"
            " place for them"
        )


def flush() -> None:
    """Send what is there now, and wait for it a little."""
    for traces in _begun:
        traces.flush()


def end() -> None:
    """Send what is left, and wait for it a little; nothing is sent afterwards."""
    for traces in _begun:
        traces.end()


def interceptors() -> list[Interceptor]:
    """What activities go through to be traced; nothing where nobody asked for traces."""
    return [traces.interceptor for traces in _begun]


def traced(store: ObjectStore) -> ObjectStore:
    """The store, with a span for each object that an activity writes to it."""
    for traces in _begun:
        store = traces.store(store)
    return store
