"""The whole graph as JSON, for a job's checkpoint.

Versioned: what a later release wrote is refused, not guessed at.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from runtime.base.errors import InputError
from runtime.context.states import AnyNode, ContextValue, Wait
from runtime.context.store import NodeStore, PendingEvent

VERSION = 1


class GraphCheckpoint(ContextValue):
    """Everything that ``Snapshot`` has; nodes in creation order."""

    version: Literal[1] = 1
    counter: int
    nodes: tuple[AnyNode, ...]
    names: dict[str, str]
    shown_before: dict[str, AnyNode | None]
    changed: tuple[str, ...]
    recorded: dict[str, str]
    events: tuple[PendingEvent, ...]
    waits: tuple[Wait, ...] = ()
    held: tuple[str, ...] | None = None
    background: dict[str, Any] = {}


def dump(store: NodeStore) -> dict[str, Any]:
    """The store as JSON data; equal stores give equal data."""
    checkpoint = GraphCheckpoint(
        counter=store.counter,
        nodes=tuple(store.nodes.values()),
        names=store.names,
        shown_before=store.shown_before,
        # A set has another order in each process, and equal stores must give equal bytes.
        changed=tuple(sorted(store.changed)),
        recorded=store.recorded,
        events=tuple(store.events),
        waits=tuple(store.waits),
        held=store.held,
    )
    return checkpoint.model_dump(mode="json")


def load(store: NodeStore, data: dict[str, Any]) -> GraphCheckpoint:
    """Fill ``store`` with what ``dump`` gave, and return all of it.

    Raises:
        InputError: if ``data`` has another version or shape.
    """
    # Before its shape: a later release's checkpoint would be called damaged.
    if data.get("version") != VERSION:
        raise InputError(
            f"context checkpoint of version {data.get('version')!r}; this release reads version"
            f" {VERSION}"
        )
    try:
        checkpoint = GraphCheckpoint.model_validate(data)
    except ValidationError as error:
        raise InputError(f"context checkpoint is damaged: {error}") from error
    store.counter = checkpoint.counter
    store.fill({state.obj_id: state for state in checkpoint.nodes})
    store.names = dict(checkpoint.names)
    store.shown_before = dict(checkpoint.shown_before)
    store.changed = frozenset(checkpoint.changed)
    store.recorded = dict(checkpoint.recorded)
    store.events = list(checkpoint.events)
    store.waits = list(checkpoint.waits)
    store.held = checkpoint.held
    return checkpoint
