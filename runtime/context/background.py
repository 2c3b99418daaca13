"""The background side of a graph: which preparations run, which have become pointless, and the
queue of what they brought.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from runtime.base.effect_numbers import number_of
from runtime.context import payloads, ticks
from runtime.context.material import material_of
from runtime.context.payloads import (
    AT_A_TIME,
    PER_TURN,
    Applied,
    PayloadKind,
    Preparation,
    ReadyQueue,
    Tally,
    UpdatePayload,
)
from runtime.context.sources import SUMMARY_LOD, ReadRequest, ReadResult, ReadStatus
from runtime.context.states import AnyNode, ContextValue, GroupState
from runtime.context.store import NodeStore


class BackgroundCheckpoint(ContextValue):
    """What a checkpoint has of it.

    Preparations that run are not taken along: they are begun anew.
    """

    number: int = 0
    waiting: tuple[UpdatePayload, ...] = ()
    tally: Tally = Tally()
    failed: dict[str, tuple[int, int]] = {}


FIRST_PAUSE, LONGEST_PAUSE = 2, 64
"""Turns for which a node's summary is not asked for after one that failed, and after many in a
row.
"""


class Background:
    """Preparations of one graph: ``at_a_time`` of them, and ``per_turn`` payloads applied at a
    tick. Not part of a statement's snapshot: what arrives while one runs stays when it is taken
    back.
    """

    def __init__(
        self, store: NodeStore, *, per_turn: int = PER_TURN, at_a_time: int = AT_A_TIME
    ) -> None:
        self._store = store
        self._at_a_time = at_a_time
        self._number = 0
        self._running: dict[str, Preparation] = {}
        self._queue = ReadyQueue(per_turn=per_turn)
        self._failed: dict[str, tuple[int, int]] = {}
        self._turn = 0

    # Preparations that run are begun anew, which sets the turn.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset({"_store", "_at_a_time", "_running", "_turn"})

    @property
    def tally(self) -> Tally:
        """What became of the payloads so far."""
        return self._queue.tally

    @property
    def waiting(self) -> bool:
        """Whether there are payloads for the next tick."""
        return bool(self._queue.waiting)

    def begin(
        self,
        *,
        turn: int,
        now: float,
        version: str = "",
        asleep: Collection[str] | None = None,
    ) -> tuple[Preparation, ...]:
        """The preparations to start after the tick of ``turn``, of this ``version`` of the job's
        own workspace, if it has one.

        Each comes back by ``ready`` or ``failed``, or not at all.

        In a job that sleeps, they are for nodes of ``asleep`` alone, also where they failed before:
        no turns pass.
        """
        # A node whose payload waits for its tick has been prepared for already.
        busy = [p.obj_id for p in self._running.values()] + [p.obj_id for p in self._queue.waiting]
        self._turn = turn
        if asleep is None:
            busy += [obj_id for obj_id, (_, until) in self._failed.items() if turn < until]
        begun: list[Preparation] = []
        with self._store.open(turn, now):
            for state in payloads.to_prepare(self._store, busy, asleep)[
                : self._at_a_time - len(self._running)
            ]:
                self._number += 1
                preparation = self._preparation(state, self._number, turn, now, version)
                self._running[preparation.payload_id] = preparation
                begun.append(preparation)
        return tuple(begun)

    def _preparation(
        self, state: AnyNode, number: int, turn: int, now: float, version: str
    ) -> Preparation:
        return Preparation(
            number=number,
            turn=turn,
            obj_id=state.obj_id,
            kind=PayloadKind.RENDER,
            basis=payloads.basis_of(self._store, state, version),
            request=payloads.request_for(state),
            material=material_of(self._store, state) if isinstance(state, GroupState) else None,
            begun_at=now,
        )

    def ready(self, payload_id: str, result: ReadResult, now: float) -> None:
        """A preparation has ended. Nothing changes before the next tick."""
        preparation = self._running.pop(payload_id, None)
        if preparation is not None:
            # It worked again, so the next failure is the first of a new row.
            self._failed.pop(preparation.obj_id, None)
            self._queue.waiting.append(preparation.payload(result, now))

    def failed(self, payload_id: str, now: float, *, told: bool = True) -> None:
        """A preparation came to nothing.

        Another one is begun after the next tick; a summary, which is paid for, some turns later.

        That there is no summary changes its node at a tick, as a summary would: a record tells
        when. Unless it is not ``told``.
        """
        preparation = self._running.pop(payload_id, None)
        if preparation is not None:
            if preparation.request.lod == SUMMARY_LOD:
                times, _ = self._failed.get(preparation.obj_id, (0, 0))
                # Bounded before it is shifted: failures are counted for as long as the job lasts.
                until = self._turn + min(FIRST_PAUSE << min(times, 8), LONGEST_PAUSE)
                self._failed[preparation.obj_id] = (times + 1, until)
                if told:
                    none = ReadResult(obj_id=preparation.obj_id, status=ReadStatus.UNWRITTEN)
                    self._queue.waiting.append(preparation.payload(none, now))
            self._queue.count(failed=1)

    def drop(self, payload_id: str) -> None:
        """A preparation was cancelled, for whatever reason: it does not come back."""
        self._running.pop(payload_id, None)

    def cancel(self) -> tuple[str, ...]:
        """The preparations to cancel: their nodes were paused or changed, or are gone."""
        gone = [
            payload_id
            for payload_id, preparation in self._running.items()
            if not payloads.holds(self._store, preparation.obj_id, preparation.basis)
        ]
        for payload_id in gone:
            del self._running[payload_id]
        return tuple(gone)

    def apply(self, *, turn: int, now: float) -> tuple[Applied, ...]:
        """Phase (a) of a tick. Those payloads that changed their nodes."""
        changed: list[Applied] = []

        def carry_out(payload: UpdatePayload) -> None:
            if payloads.apply(self._store, payload):
                changed.append(
                    Applied(obj_id=payload.obj_id, turn=payload.source[0], effect=payload.source[1])
                )

        with self._store.open(turn, now):
            self._queue.take(
                lambda payload: payloads.holds(self._store, payload.obj_id, payload.basis),
                carry_out,
            )
        return tuple(changed)

    def requests(self, obj_ids: Sequence[str]) -> tuple[ReadRequest, ...]:
        """What payloads for these nodes would have been read by."""
        return tuple(payloads.request_for(self._store.nodes[obj_id]) for obj_id in obj_ids)

    def with_unread(
        self, results: Sequence[ReadResult], obj_ids: Sequence[str]
    ) -> tuple[ReadResult, ...]:
        """What a record's payloads for these nodes had brought, in this order: of a view of which
        it has no reading, nothing new.
        """
        unread = ticks.unchanged(self._store, results, obj_ids)
        known = {result.obj_id: result for result in (*results, *unread)}
        return tuple(known[obj_id] for obj_id in obj_ids if obj_id in known)

    def repeat(
        self,
        results: Sequence[ReadResult],
        applied: Sequence[Applied],
        read_of: Mapping[tuple[int, int], str],
        *,
        turn: int,
        now: float,
    ) -> None:
        """Phase (a) as a record has it: these readings of what it ``applied``, whatever was
        prepared here. ``read_of`` has the versions that were read, by turns and effects.
        """
        known = {payload.obj_id: payload for payload in applied}
        with self._store.open(turn, now):
            for result in results:
                state, payload = self._store.nodes[result.obj_id], known[result.obj_id]
                begun, effect = payload.turn, payload.effect
                preparation = self._preparation(
                    state, number_of(effect), begun, now, read_of.get((begun, effect), "")
                )
                payloads.apply(self._store, preparation.payload(result, now))

    def dump(self) -> dict[str, Any]:
        """For the checkpoint."""
        kept = BackgroundCheckpoint(
            number=self._number,
            waiting=tuple(self._queue.waiting),
            tally=self._queue.tally,
            failed=self._failed,
        )
        return kept.model_dump(mode="json")

    def load(self, data: dict[str, Any]) -> None:
        """Take up what ``dump`` gave."""
        kept = BackgroundCheckpoint.model_validate(data)
        self._number, self._failed = kept.number, dict(kept.failed)
        self._queue.waiting, self._queue.tally = list(kept.waiting), kept.tally
