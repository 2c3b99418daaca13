"""Whether this process sends traces. Nothing of OpenTelemetry is loaded where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio.worker import Interceptor

from runtime.archive.stores import ObjectStore

if TYPE_CHECKING:
    from activities.traced import Traces

_begun: list[Traces] = []
"""At most one: a process has one collector."""


def begin(endpoint: str) -> None:
    """Send traces to ``endpoint`` from now on, the whole URL; the second call does nothing."""
    if not _begun:
        from activities.traced import Traces

        _begun.append(Traces.to(endpoint))


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
