"""The model activities: one call of a model, archived before and after, and the end of a run.

A turn's request is archived inside the transport before its bytes leave, the reply before the
activity returns. A retry that finds its turn's step in the archive returns that reply and calls
nobody. Retries are Temporal's: each is an attempt of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from temporalio import activity

from activities._litellm_library import warm
from activities._masked import masked_call, masked_end
from activities._model_turn import ModelTurn
from activities._prompts import Prompt, forget, summary_prompt, turn_prompt
from activities._without_model import reply_without_model
from activities.contracts import JobEnd, SummaryCall, TurnCall, TurnReply
from runtime.archive import keys
from runtime.archive.forms import NewEnd, Step
from runtime.archive.job import JobArchive
from runtime.archive.recorded import replied_at
from runtime.archive.signing import signer_of
from runtime.archive.stores import ObjectStore
from runtime.base.failpoints import failpoint
from runtime.base.redaction.redactor import redactor_of
from runtime.base.values import JobKey, StepRef
from runtime.history.condensers.request import SummaryForm
from runtime.workspace.handed import hand_over

__all__ = ["ModelActivities", "warm"]


class ModelActivities:
    """The activities ``call_model``, ``summarise`` and ``end_job``, writing to one object store.

    ``ended`` is told of each job that has ended.

    Raises:
        InputError: if ``HOLDFAST_SIGNING_KEY`` is set to what is no key.
    """

    def __init__(self, store: ObjectStore, ended: Callable[[JobKey], None] | None = None) -> None:
        self._store = store
        self._ended = ended
        self._signer = signer_of()

    @activity.defn(name="call_model")
    async def call_model(self, call: TurnCall) -> TurnReply:
        """Call the model for one turn, or return the reply that the archive has of it already.

        Raises:
            ApplicationError: of a ``FailureKind``; the message is the provider's own, without
                secrets. Or ``BudgetSpent``: attempts that failed have used up what the job had
                left. Its details are a ``Failed``, of all attempts of the turn so far.
            ArchiveError: the archive cannot be read or written; nothing was sent, or the reply is
                lost.
        """
        run = activity.info().workflow_run_id or ""
        if call.given is not None:
            # There is no ``ModelTurn`` here, which would mask the call.
            masked = await asyncio.to_thread(masked_call, call)
            reply = await asyncio.to_thread(
                reply_without_model, self._store, masked, call.given, run, activity.info().attempt
            )
        else:
            reply = await self._reply(call, run, turn_prompt)
        failpoint("model.before_return")
        return reply

    @activity.defn(name="summarise")
    async def summarise(self, call: SummaryCall) -> TurnReply:
        """Have a stretch of a job summed up: a model call like any other, archived as a side run of
        the job's.

        Raises:
            ApplicationError: as ``call_model``.
            ArchiveError: as ``call_model``.
        """
        failpoint("summary.before")
        fields = call.model_dump(exclude={"name", "prompt"})
        run = keys.side_run(activity.info().workflow_run_id or "", call.name)
        own = call.prompt is SummaryForm.OWN_PROMPT
        reply = await self._reply(
            TurnCall.model_validate(fields), run, summary_prompt if own else turn_prompt
        )
        failpoint("summary.before_return")
        return reply

    async def side_call(self, call: TurnCall, run: str) -> TurnReply:
        """A call with a prompt of its own, archived as the side run ``run``.

        Errors as ``call_model``.
        """
        return await self._reply(call, run, summary_prompt)

    async def _reply(self, call: TurnCall, run: str, prompt: Prompt) -> TurnReply:
        info = activity.info()
        archive = JobArchive.of(self._store, call.key)
        turn = ModelTurn(
            call,
            archive,
            run=run,
            temporal_attempt=info.attempt,
            activity_id=info.activity_id,
            prompt=prompt,
        )
        async with turn.heartbeats():
            done = await turn.take()
            own = done.attempt.key == turn.attempt
            attempt = info.attempt if own else await asyncio.to_thread(_attempt_of, archive, done)
        return TurnReply(
            **dict(done.reply),
            usage=done.usage,
            cost_usd=done.cost_usd,
            failed=done.failed_attempts,
            step=done.ref,
            attempt=attempt,
            at=replied_at(done),
        )

    @activity.defn(name="end_job")
    async def end_job(self, end: JobEnd) -> StepRef:
        """Archive the end of a run. A run that is ended already keeps the end it has."""
        failpoint("end.before")
        end = await asyncio.to_thread(masked_end, end)
        archive = JobArchive.of(self._store, end.key)
        run = activity.info().workflow_run_id or ""
        patch = None
        if end.hand_patch:
            redactor = redactor_of(end.redact)
            patch = await asyncio.to_thread(
                hand_over, archive, run, end.turn, end.workspace, redactor
            )
            failpoint("end.after_patch")
        new = NewEnd.like(end, run=run, ended_at=datetime.now(UTC).isoformat(), patch=patch)
        ref = await asyncio.to_thread(archive.write_end, new, self._signer)
        archive.forget()
        forget(end.key)
        # After the end is archived: whoever is told may remove the job's files here.
        if self._ended is not None:
            await asyncio.to_thread(self._ended, end.key)
        failpoint("end.before_return")
        return ref


def _attempt_of(archive: JobArchive, step: Step) -> int:
    """Temporal's number of the attempt that got a step's reply, when that was another than this
    one.
    """
    attempts = archive.attempts(step.run, step.turn)
    return next((a.temporal_attempt for a in attempts if a.key == step.attempt.key), 1)
