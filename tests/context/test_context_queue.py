"""The ready queue against a naive one: what several payloads for one node come to, which are stale,
and who waits how long.

A graph prepares one payload for a node at a time, so its histories (``test_context_scheduler.py``)
have nothing to coalesce; the queue's own histories have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from runtime.base.digests import digest_of
from runtime.context.payloads import PayloadKind, ReadyQueue, Tally, UpdatePayload

NODES, KINDS = ("a", "b", "c"), (PayloadKind.RENDER, PayloadKind.PARSE)
arrivals = st.tuples(st.just("arrive"), st.sampled_from(NODES), st.sampled_from(KINDS))
changes = st.tuples(st.just("change"), st.sampled_from(NODES))
ticks = st.tuples(st.just("tick"))
histories = st.lists(st.one_of(arrivals, arrivals, changes, ticks), max_size=40)


def payload(number: int, node: str, kind: PayloadKind, version: int) -> UpdatePayload:
    """A payload that was prepared from the node's ``version``."""
    return UpdatePayload.model_validate(
        {
            "payload_id": str(number),
            "obj_id": node,
            "prepared_at": 0.0,
            "basis": {"obj_digest": str(version), "policy_hash": "", "deps_hash": ""},
            "kind": kind,
            "data": {},
            "cost": {},
            "payload_hash": digest_of(number),
            "source": (0, 0),
        }
    )


@dataclass
class Naive:
    """Section 6.2 of docs/contract/executable-context.md: one line for each rule, and every payload
    looked at at every tick.

    ``arrived`` are number, node, kind and version; applying one makes its node another version.
    """

    per_turn: int
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NODES, 0))
    arrived: list[tuple[int, str, PayloadKind, int]] = field(default_factory=list)
    tally: dict[str, int] = field(
        default_factory=lambda: {"applied": 0, "stale": 0, "superseded": 0}
    )

    def tick(self) -> list[int]:
        """The numbers of the payloads that are applied, in order."""
        applied: list[int] = []
        valid = [one for one in self.arrived if one[3] == self.versions[one[1]]]
        self.tally["stale"] += len(self.arrived) - len(valid)
        kept: list[tuple[int, str, PayloadKind, int]] = []
        for place, one in enumerate(valid):
            if any(other[1:3] == one[1:3] for other in valid[:place]):
                self.tally["superseded"] += (
                    1  # its place is that of the oldest of its key, whose content it replaces
                )
                continue
            kept.append([other for other in valid if other[1:3] == one[1:3]][-1])
        while kept and len(applied) < self.per_turn:
            number, node, _, version = kept.pop(0)
            if version != self.versions[node]:
                self.tally["stale"] += 1
                continue
            applied.append(number)
            self.versions[node] += 1
            self.tally["applied"] += 1
        self.arrived = kept
        return applied


@given(histories, st.integers(1, 3))
@example(
    [
        ("arrive", "a", KINDS[0]),
        ("arrive", "b", KINDS[0]),
        ("arrive", "a", KINDS[0]),
        ("tick",),
        ("tick",),
    ],
    1,
)
@example(
    [("arrive", "a", KINDS[0]), ("arrive", "a", KINDS[1]), ("arrive", "b", KINDS[0]), ("tick",)], 2
)
@example([("arrive", "a", KINDS[0]), ("change", "a"), ("arrive", "a", KINDS[0]), ("tick",)], 2)
def test_the_queue_does_what_the_naive_one_does(
    history: list[tuple[str, ...]], per_turn: int
) -> None:
    """The same payloads in the same order at every tick, the same left over, and the same
    counts.
    """
    naive, queue = Naive(per_turn), ReadyQueue(per_turn=per_turn)
    versions = dict.fromkeys(NODES, 0)
    for number, (what, *rest) in enumerate(history):
        if what == "arrive":
            node, kind = rest[0], PayloadKind(rest[1])
            queue.waiting.append(payload(number, node, kind, versions[node]))
            naive.arrived.append((number, node, kind, naive.versions[node]))
        elif what == "change":
            versions[rest[0]] += 1
            naive.versions[rest[0]] += 1
        else:
            applied: list[int] = []

            def apply(one: UpdatePayload, applied: list[int] = applied) -> None:
                applied.append(int(one.payload_id))
                versions[one.obj_id] += 1

            queue.take(lambda one: one.basis.obj_digest == str(versions[one.obj_id]), apply)
            assert applied == naive.tick()
        assert [int(one.payload_id) for one in queue.waiting] == [one[0] for one in naive.arrived]
        assert queue.tally == Tally(**naive.tally)


@given(st.integers(1, 3), st.integers(2, 6))
def test_nobody_waits_longer_than_all_others_take(per_turn: int, nodes: int) -> None:
    """However often others are prepared anew: a payload that is first in the queue is applied at
    the next tick.
    """
    queue = ReadyQueue(per_turn=per_turn)
    waited = dict.fromkeys(map(str, range(nodes)), 0)
    number = 0
    for _ in range(4 * nodes):
        for node in waited:
            number += 1
            queue.waiting.append(payload(number, node, PayloadKind.RENDER, 0))
        applied: list[str] = []
        queue.take(lambda _: True, lambda one, applied=applied: applied.append(one.obj_id))  # type: ignore[misc]
        assert len(applied) == min(per_turn, nodes)
        waited = {node: 0 if node in applied else turns + 1 for node, turns in waited.items()}
        assert max(waited.values()) < -(-nodes // per_turn)
