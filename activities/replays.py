"""The activities of replays: what a reset run is to do, and the turns of a record."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.client import Client

from activities._taken_over import take_over
from activities.record import Claim, ClaimQuestion, RecordedQuestion, RecordedTurn, ReplayOrder
from runtime.archive import keys
from runtime.archive.forms import End, Step
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.recorded import (
    TurnRecord,
    recorded_summary,
    replied_at,
    turn_record,
    user_messages,
)
from runtime.archive.replays import claim_replay
from runtime.archive.stores import ObjectStore
from runtime.archive.without_model import origin_of
from runtime.base.errors import NotFound
from runtime.base.failpoints import failpoint
from runtime.base.values import ModelReply
from runtime.projection.segments import SegmentKind
from runtime.server.histories import backwards

_REASON = re.compile(r"holdfast replay (\S*)(?: from statement (\d+))?")
"""The reason of a reset that Holdfast asked for: with the id of the order, and where it begins."""


@dataclass(frozen=True)
class Ordered:
    """What the reason of a reset says of its order: the id, and the statement that it begins at, 0
    where that is not said.
    """

    id: str
    start: int = 0

    @property
    def reason(self) -> str:
        """The reason as the server is told."""
        return f"holdfast replay {self.id} from statement {self.start}"


@dataclass(frozen=True)
class _Reset:
    """A reset: the run that it was of, and the order by which it was made, None if it was made by
    others.
    """

    base: str
    ordered: Ordered | None


async def _resets(client: Client, execution: WorkflowExecution) -> AsyncIterator[_Reset]:
    """The resets in a run's history, newest first: it was made by the first, older ones were copied
    with the history before it.
    """
    async for event in backwards(client, execution):
        failed = event.workflow_task_failed_event_attributes
        if failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW:
            told = _REASON.match(failed.failure.message)
            ordered = Ordered(told[1], int(told[2] or 0)) if told is not None else None
            yield _Reset(failed.base_run_id, ordered)


async def ordered_of_reset(client: Client, execution: WorkflowExecution) -> Ordered | None:
    """What the reason says of the reset that made a run; None for a run that was reset by nobody,
    or by others.

    Raises:
        RPCError: if the server does not answer, or has no such run.
    """
    async for reset in _resets(client, execution):
        return reset.ordered
    return None


class ReplayActivities:
    """``claim_replay`` and ``recorded_turn``, with a client that may read the history of the run
    that asks.
    """

    def __init__(self, store: ObjectStore, client: Client) -> None:
        self._store = store
        self._client = client

    @activity.defn(name="claim_replay")
    async def claim_replay(self, question: ClaimQuestion) -> Claim:
        """The order of the replay that reset this run, claimed for it; and how the turn's statement
        went, if recorded.

        A run that was reset by anybody else has no order, and goes on as it would have.
        """
        failpoint("replay.before_claim")
        archive = JobArchive(self._store, question.batch, question.job)
        info = activity.info()
        run = info.workflow_run_id or ""
        execution = WorkflowExecution(workflow_id=info.workflow_id or "", run_id=run)
        place = keys.parse_turn_key(question.parent.key) if question.parent is not None else None
        resets = list[_Reset]()
        bases = list[str]()
        async for reset in _resets(self._client, execution):
            resets.append(reset)
            if place is not None and place.run == keys.name(reset.base):
                # The run that has the step: of what was before, the step's timeline tells.
                break
            bases.append(reset.base)
        ordered = resets[0].ordered if resets else None
        order = None
        if ordered is not None:
            claimed = await asyncio.to_thread(claim_replay, archive, ordered.id, run)
            order = ReplayOrder.model_validate(claimed) if claimed is not None else None
        recorded = await asyncio.to_thread(self._execution, question)
        failpoint("replay.after_claim")
        return Claim(replay=order, execution=recorded, bases=tuple(reversed(bases)))

    @activity.defn(name="recorded_turn")
    async def recorded_turn(self, question: RecordedQuestion) -> RecordedTurn | None:
        """A turn of a record, or a summary of its prompt; None if the record has none.

        Raises:
            ArchiveError: if it cannot be read.
        """
        return await asyncio.to_thread(self._summary if question.summary else self._turn, question)

    def _execution(self, question: ClaimQuestion) -> dict[str, object] | None:
        """The recorded execution of the turn's statement, in the run that the turn's step is of."""
        place = keys.parse_turn_key(question.parent.key) if question.parent is not None else None
        if question.parent is None or place is None or place.turn != question.turn:
            return None
        archive = JobArchive.of(self._store, keys.job_of(place.job))
        run = archive.step(question.parent).run
        return turn_record(archive, run, question.turn).executed

    def _turn(self, question: RecordedQuestion) -> RecordedTurn | None:
        source = question.source
        archive = JobArchive.of(self._store, source)
        try:
            record = turn_record(archive, source.run, question.turn)
        except NotFound:
            return None
        if question.going_on is not None:
            # Before the turn has anything of its own in this run: from then on others may go on
            # from here.
            run = activity.info().workflow_run_id or ""
            take_over(archive, source.run, question.turn, question.going_on, run)
        layout = archive.turn_layout(source.run, question.turn) if question.layout else ()
        return RecordedTurn(
            reply=self._reply(record.step),
            step=record.step.ref,
            at=record.at,
            messages=user_messages(archive, source.run, question.turn),
            execution=record.executed,
            nodes=record.nodes if record.whole else None,
            events=record.events if record.whole else None,
            ended=isinstance(record.after, End),
            layout=tuple(segment.digest for segment in layout),
            interim=record.step.interim,
            read_of=tuple(_read_of(record.step)),
            woken=_woken(archive, source.run, record),
        )

    def _summary(self, question: RecordedQuestion) -> RecordedTurn | None:
        source = question.source
        archive = JobArchive.of(self._store, source)
        step = recorded_summary(archive, source.run, question.turn, question.summary)
        if step is None:
            return None
        return RecordedTurn(reply=self._reply(step), step=step.ref, at=replied_at(step))

    def _reply(self, step: Step) -> ModelReply:
        """A step's reply, booked as the call in which a model was asked for it."""
        origin = origin_of(self._store, step)
        return ModelReply(
            **dict(step.reply),
            usage=origin.usage,
            cost_usd=origin.cost_usd,
            failed=origin.failed_attempts,
        )


def _woken(archive: JobArchive, run: str, record: TurnRecord) -> str:
    """How the sleep behind a turn ended after which another had begun its call, which has no reply:
    its prompt says so.
    """
    after = record.step.turn + 1
    if record.after is not None or not archive.has_turn(run, after):
        return ""
    from runtime.job.sleeping import woken_in

    # What cannot be read of a call that is made again does without.
    with suppress(*UNREADABLE):
        for segment in archive.turn_layout(run, after):
            if segment.kind is SegmentKind.DELTA and (told := woken_in(segment.text)):
                return told
    return ""


def _read_of(step: Step) -> Iterator[tuple[int, int, str]]:
    """Which versions of the job's own workspace were read for the payloads that were applied before
    a step; see ``RecordedTurn``.
    """
    for event in step.events or ():
        if event["type"] == "async_payload_prepared":
            meta = event["payload_meta"]
            # What was archived before bases had versions has none.
            if version := meta.get("basis", {}).get("version"):
                yield *meta["source"], version
