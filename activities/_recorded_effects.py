"""Effects and the archive: what reads gave is kept there, and a replay that is frozen is answered
from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from temporalio import activity

from activities.contracts import FileCall, FileCallResult, ReadBatch, ReadBatchResult
from activities.record import EffectName
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_effect
from runtime.archive.stores import ObjectStore
from runtime.base.effect_numbers import WAIT_EFFECTS, is_of_statement
from runtime.base.values import JobKey
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus

NOT_RECORDED = "the record has no result for this call, and a frozen replay makes none"

Address = tuple[str, int, int]
"""A run, a turn of it, and the number of an effect."""


def value_in_record(
    store: ObjectStore, effect: EffectName, turn: int, number: int
) -> dict[str, Any] | None:
    """The result that a record has of effect ``number`` of the turn; None if it has none."""
    if effect.missing:
        return None
    source = effect.source
    return recorded_effect(JobArchive.of(store, source), source.run, turn, number)


def recorded_value(
    store: ObjectStore, effect: EffectName, archive: JobArchive, address: Address
) -> dict[str, Any] | None:
    """An effect's result from a record, kept in ``archive`` under ``address`` too if it should be;
    None if there is none.
    """
    _, turn, number = address
    value = value_in_record(store, effect, turn, number)
    if value is not None and effect.kept:
        archive.write_effect(*address, value)
    return value


class ReadEffects:
    """Reads, with their results in the archive ``store``; without one, or without a job's key, as
    they come.
    """

    def __init__(self, store: ObjectStore | None) -> None:
        self._store = store

    def sources(
        self,
        batch: ReadBatch,
        read: Callable[[ReadBatch], ReadBatchResult],
        uses: Iterable[str] = (),
    ) -> ReadBatchResult:
        """The sources of a batch. A tick that found nothing new leaves nothing in the archive,
        unless a view was marked.

        ``uses`` are the keys of what the store keeps for all jobs and the results were made from;
        they are looked at when ``read`` has returned.
        """
        if self._store is None or batch.key is None:
            return read(batch)
        if batch.recorded is not None:
            value = recorded_value(
                self._store, batch.recorded, *self._place(self._store, batch.key, batch)
            )
            results = ReadBatchResult.model_validate(value).results if value is not None else ()
            # By node: a record may have fewer readings than are asked for.
            known = {result.obj_id: result for result in results}
            answers = (
                (known.get(request.obj_id) or _not_recorded(request, batch.effect))
                for request in batch.requests
            )
            return ReadBatchResult(
                results=tuple(answer for answer in answers if answer is not None)
            )
        result = read(batch)
        changed = any(one.status is not ReadStatus.UNCHANGED for one in result.results)
        # A tick without news leaves nothing, or the archive would grow with the time asleep.
        if batch.effect >= WAIT_EFFECTS and not changed and not batch.marked:
            return result
        value = result.model_dump(mode="json")
        return ReadBatchResult.model_validate(
            self._kept(self._store, batch.key, batch, value, uses)
        )

    def file(self, call: FileCall, answer: Callable[[FileCall], FileCallResult]) -> FileCallResult:
        """The result of a file call."""
        if self._store is None or call.key is None:
            return answer(call)
        if call.recorded is not None:
            value = recorded_value(
                self._store, call.recorded, *self._place(self._store, call.key, call)
            )
            if value is None:
                return FileCallResult(error_type="RuntimeError", error_message=NOT_RECORDED)
            return FileCallResult.model_validate(value)
        kept = self._kept(self._store, call.key, call, answer(call).model_dump(mode="json"))
        return FileCallResult.model_validate(kept)

    def _kept(
        self,
        store: ObjectStore,
        key: JobKey,
        asked: ReadBatch | FileCall,
        value: dict[str, Any],
        uses: Iterable[str] = (),
    ) -> dict[str, Any]:
        archive, address = self._place(store, key, asked)
        return archive.write_effect(*address, value, uses)

    def _place(
        self, store: ObjectStore, key: JobKey, asked: ReadBatch | FileCall
    ) -> tuple[JobArchive, Address]:
        run = activity.info().workflow_run_id or ""
        return JobArchive.of(store, key), (run, asked.turn, asked.effect)


def _not_recorded(request: ReadRequest, effect: int) -> ReadResult | None:
    """The reading that a record has nothing of: none, if the node shows something already, and no
    statement asked for it.

    Then a tick found nothing new, or did not look. The node stays due, so that it is read whenever
    the recorded job read it.
    """
    if request.known is not None and not is_of_statement(effect):
        return None
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.ERROR,
        error_type="RuntimeError",
        error_message=NOT_RECORDED,
    )
