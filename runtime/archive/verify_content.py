"""Verifying what objects hold: requests and layouts put together again, responses, the states of
nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runtime.archive.checkpoints import state_text
from runtime.archive.container import ArchivedObject
from runtime.archive.findings import Fault
from runtime.archive.forms import Step, opened
from runtime.archive.layouts import line_of, lines_of
from runtime.archive.nodes import NodeStates
from runtime.archive.requests import RequestReader
from runtime.archive.responses import read_chunks, read_response
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import digest_bytes, digest_of
from runtime.base.errors import ObjectCorrupt, ObjectMissing

_Lines = tuple[bytes, ...]
_REMEMBERED = 64


class Contents:
    """What is known of the objects read so far.

    Objects are checked in the order in which they were written.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._reader = store, RequestReader(store.get)
        self._objects: dict[str, ArchivedObject] = {}
        self._states: dict[str, NodeStates] = {}
        self._lines: dict[str, tuple[_Lines, tuple[str, ...]]] = {}

    def know(self, archived: ArchivedObject) -> None:
        """Take an object that was read, so that it is not read again."""
        self._objects[archived.key] = archived
        if archived.header.get("kind") == "attempt":
            self._reader.remember(archived)

    def states(self, step: str) -> NodeStates | None:
        """The node states at a step that was checked."""
        return self._states.get(step)

    def state(self, checkpoint: ArchivedObject) -> bytes:
        """The JSON of a checkpoint's state.

        Raises:
            ObjectCorrupt, ObjectMissing: if it cannot be read.
        """
        return state_text(checkpoint, self._object, self._reader)

    def _object(self, key: str, kind: str) -> ArchivedObject:
        known = self._objects.get(key)
        return opened(key, self._store.get(key), kind) if known is None else known

    def check_attempt(self, attempt: ArchivedObject) -> Iterator[tuple[Fault, str, str]]:
        """Put the attempt's request and layout together.

        Yields the fault, the key it is about, and a message.
        """
        try:
            request = self._reader.request(attempt.key)
        except (ObjectCorrupt, ObjectMissing) as error:
            yield Fault.WIRE, attempt.key, f"its request cannot be put together: {error}"
            return
        if len(request.wire) != attempt.header["request"]["bytes"]:
            yield Fault.WIRE, attempt.key, "its request has another size than it gives"
        base = attempt.header["base"]
        parent = self._parent_attempt(attempt)
        # A recipe could be made from any attempt; only the parent's keeps chains within one
        # timeline.
        if base is not None and base != parent and not self._lost_parent(attempt):
            yield Fault.ALTERED, attempt.key, f"its base {base} is not its parent's attempt"
        for message in self._check_layout(attempt, lines_of(request.layout), parent):
            yield Fault.LAYOUT, attempt.key, message

    def _check_layout(
        self, attempt: ArchivedObject, lines: _Lines, parent: str | None
    ) -> Iterator[str]:
        """The layout has its digest, and is what its delta makes of the parent's."""
        old, old_digests = self._lines.get(parent, ((), ())) if parent else ((), ())
        # What is wrong with the step before is told of that: nothing of this turn shows it.
        lost = self._lost_parent(attempt)
        unknown = lost or (parent is not None and parent not in self._lines)
        digests: list[str] = []
        for op, *numbers in attempt.header["delta"]:
            place = len(digests)
            if op == "keep" and unknown:
                digests += [
                    digest_bytes(line) for line in lines[place : place + numbers[1] - numbers[0]]
                ]
            elif op == "keep":
                start, stop = numbers
                if (
                    not start < stop <= len(old)
                    or lines[place : place + stop - start] != old[start:stop]
                ):
                    yield (
                        f"segments {start} to {stop} of the layout before are not what its delta"
                        " keeps"
                    )
                    return
                digests += old_digests[start:stop]
            elif op == "add":
                digests += [digest_bytes(line) for line in lines[place : place + numbers[0]]]
            else:
                if not lost and lines[place : place + 1] != self._reply_line(attempt):
                    yield "the segment of the reply before is not that reply"
                digests += [digest_bytes(line) for line in lines[place : place + 1]]
        if len(digests) != len(lines) or attempt.header["layout"]["segments"] != len(lines):
            yield f"its delta makes {len(digests)} segments, its layout has {len(lines)}"
        elif digest_of(digests) != attempt.header["layout"]["digest"]:
            yield "its layout does not have the digest that it gives"
        self._lines[attempt.key] = lines, tuple(digests)
        # A run that starts from an older attempt finds its lines gone: then they are digested, not
        # compared.
        while len(self._lines) > _REMEMBERED:
            self._lines.pop(next(iter(self._lines)))

    def check_step(self, step: ArchivedObject) -> Iterator[tuple[Fault, str]]:
        """The response is what the step says, and the node states have their digest."""
        yield from self.check_response(step)
        yield from ((Fault.NODES, message) for message in self._check_nodes(step))
        yield from ((Fault.EVENTS, message) for message in _check_events(step))

    def check_response(self, outcome: ArchivedObject) -> Iterator[tuple[Fault, str]]:
        """The response of a step or a failure has its digest and size, and its chunks cover it."""
        try:
            response, chunks = read_response(outcome), read_chunks(outcome)
        except (ObjectCorrupt, ValueError, IndexError) as error:
            yield Fault.RESPONSE, f"its response cannot be read: {error}"
            return
        said = outcome.header["response"]
        if digest_bytes(response) != said["digest"] or len(response) != said["bytes"]:
            yield Fault.RESPONSE, "its response does not have the digest and size that it gives"
        if chunks and sum(chunk.size for chunk in chunks) != len(response):
            yield Fault.RESPONSE, "its chunks do not add up to its response"

    def _check_nodes(self, step: ArchivedObject) -> Iterator[str]:
        header = step.header
        before = (
            NodeStates.none()
            if header["parent"] is None
            else self._states.get(header["parent"]["key"])
        )
        if header["keyframe"]:
            states, _ = NodeStates.none().updated(header["nodes"])
            if before is not None and not _differ_only_in(before, states, header["changed"]):
                yield "the keyframe's nodes are not those of the steps before it, with what changed"
        elif before is None:
            return
        else:
            states, _ = before.updated(header["nodes"])
        self._states[step.key] = states
        if states.digest != header["nodes_digest"]:
            yield "its nodes do not have the digest that it gives"

    def _parent_attempt(self, attempt: ArchivedObject) -> str | None:
        parent = attempt.header["parent"]
        step = self._objects.get(parent["key"]) if parent else None
        return step.header["attempt"]["key"] if step is not None else None

    def _lost_parent(self, attempt: ArchivedObject) -> bool:
        """Whether the step before it is not there, or cannot be read."""
        parent = attempt.header["parent"]
        return parent is not None and self._objects.get(parent["key"]) is None

    def _reply_line(self, attempt: ArchivedObject) -> _Lines:
        step = (
            self._objects.get(attempt.header["parent"]["key"]) if attempt.header["parent"] else None
        )
        if step is None:
            return ()
        read = Step.read(step)
        return (line_of(read.reply.segment(read.turn)),)


def _check_events(step: ArchivedObject) -> Iterator[str]:
    """Each event has an id of its own, and the statement's are among them."""
    events = step.header.get("events")
    if events is None:
        return
    ids = [event["id"] for event in events if "id" in event]
    if len(set(ids)) != len(ids):
        yield "two of its events have one id"
    missing = [
        event for event in (step.header["execution"] or {}).get("events", ()) if event not in ids
    ]
    if missing:
        yield f"its statement's events {', '.join(missing)} are not among its events"


def _differ_only_in(before: NodeStates, after: NodeStates, changed: Sequence[Any]) -> bool:
    everything = before.digests.keys() | after.digests.keys()
    return all(before.digests.get(k) == after.digests.get(k) for k in everything - set(changed))
