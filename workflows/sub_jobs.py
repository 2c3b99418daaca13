"""The sub-jobs of a job in Temporal: they are workflows of their own, that an activity starts.

A sub-job has a name that is made of its job's, of the order by which that began, and of what it was
asked: so a job that is reset, or goes on after it was lost, and executes the statement again, finds
the one that it has started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from activities.sub_job_contracts import OpenSubJobs, Spawned, SpawnOrder, SubJobEnds
    from runtime.base.digests import digest_of
    from runtime.base.spec.models import Amount, Budget, JobSpec, Retry
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import effect_activity_id, job_workflow_id
    from runtime.context.sub_job_end import SubJobEnd
    from runtime.context.sub_jobs import name_of as sub_job_name
    from runtime.interpreter.host import Effect
    from runtime.interpreter.spawning import SpawnRequest
    from runtime.job.purse import covers, in_words
    from runtime.job.sub_jobs import SubJob
    from workflows.calling import result_of
    from workflows.holding import Holding
    from workflows.limits import CALL_LIMIT
    from workflows.messages import JobOrder, JobOutcome
    from workflows.moment import Moment
    from workflows.patches import NOT_LENT, patched
    from workflows.preparing import WAITED_FOR
    from workflows.slices import Slices

LEAST_WALL = 60.0
"""Seconds of work that a sub-job has at least."""


class SubJobs:
    """Starts the sub-jobs of one job, hears of their ends, and ends those that are left.

    ``arrived`` are ends that nobody has looked at yet, ``inbox`` those that no turn has begun with.
    """

    def __init__(self, order: JobOrder, moment: Moment, slices: Slices) -> None:
        self._order, self._moment, self._slices = order, moment, slices
        self.arrived: list[SubJobEnd] = []
        self.inbox: list[SubJobEnd] = list(order.origin.ended) if order.origin else []
        self.holding = Holding(order, moment)

    def begin(self) -> None:
        """Know which sub-jobs are the job's own: a fork knows of another's too."""
        if self._order.spec.spawn is not None:
            self._moment.job.own_sub_jobs(str(self._order.key))

    def look(self) -> None:
        """Take note of the ends that have arrived; see ``Moment``."""
        self.inbox += self.arrived
        self.arrived = []

    @property
    def carried(self) -> tuple[SubJobEnd, ...]:
        """What the origin of the run that goes on says."""
        return (*self.inbox, *self.arrived)

    @property
    def heard_of(self) -> list[str]:
        """The sub-jobs of whose ends no turn knows yet."""
        return [end.job for end in self.inbox]

    async def find(self) -> None:
        """Ask for the ends of sub-jobs that another job has started, of which this one is a fork:
        they tell that job.
        """
        moment, own = self._moment, str(self._order.key)
        left = [
            one.job
            for one in moment.job.ledger.sub_jobs.known.values()
            if one.parent != own and one.end is None and one.job not in self.heard_of
        ]
        if not left or moment.answers.record is not None:
            return
        asked = result_of(
            "find_sub_jobs",
            OpenSubJobs(jobs=tuple(_key(job) for job in left)),
            SubJobEnds,
            id=f"sub-jobs-{moment.job.turn + 1}",
            until=moment.until_deadline(),
            summary=f"how {len(left)} sub-jobs stand",
        )
        self.inbox += (await moment.after(asked, lambda ends: ends.worked)).ends

    def take(self) -> Sequence[SubJobEnd]:
        """The ends with which a turn begins."""
        taken, self.inbox = self._moment.answers.ended(self.inbox)
        return taken

    async def start(self, effect: Effect, turn: int, number: int) -> tuple[Spawned, float]:
        """The sub-job that effect ``number`` of the turn's statement asks for."""
        request: SpawnRequest = effect.request
        refused = await self._refused(request.lent, turn)
        key = self._order.key
        child = JobKey(batch=key.batch, job=name_of(self._order, request))
        order = self._child(child, request, turn)
        spawned: Spawned = await result_of(
            "spawn_job",
            SpawnOrder(
                key=key,
                turn=turn,
                effect=number,
                child=child,
                queue=workflow.info().task_queue,
                order=order.model_dump(mode="json"),
                refused=refused,
                recorded=self._moment.answers.effect_for(effect, number),
            ),
            Spawned,
            id=effect_activity_id(turn, number),
            until=self._moment.until_deadline(),
            summary=f"start {child.job}"[:120],
        )
        told: Spawned = spawned.timeless
        if told.error_type is None and told.ended is None:
            await self.holding.tell(told.job, None if told.earlier else order.held)
        if told.error_type is None:
            self._moment.job.spawned(
                SubJob(
                    job=told.job,
                    parent=told.parent,
                    call=request.call,
                    lent=request.lent,
                    end=told.ended,
                )
            )
        return told, spawned.worked or 0.0

    async def _refused(self, lent: Amount, turn: int) -> str:
        """Why no budget has anything for it; waits until the batch's has, if it will have."""
        ledger = self._moment.job.ledger
        # Before there were such holds, it asked its batch all the same.
        if not ledger.can_lend(lent) and patched(WAITED_FOR):
            return "summaries have spent what was to be lent"
        # What a record answers was granted then.
        if ledger.granted is None or ledger.repeats:
            return ""
        before = ledger.refused
        await self._slices.granted(turn, lent)
        if covers(ledger.slice_left(turn), lent):
            return ""
        reason = ledger.refused
        if reason and not before and patched(NOT_LENT):
            # What holds no sub-job may hold many calls.
            ledger.refused = ""
            return f"{in_words(lent)} cannot be lent: {reason}"
        return reason or "the time of this job is over"

    def _child(self, child: JobKey, request: SpawnRequest, turn: int) -> JobOrder:
        spec = self._spec(child, request, turn)
        return JobOrder(
            key=child,
            spec=spec,
            definition=digest_of(spec.model_dump(mode="json")),
            id=f"of {self._order.key}: {child.job}",
            routes=self._order.routes,
            until=self._moment.job.ledger.until,
            held=self.holding.told,
        )

    def _spec(self, child: JobKey, request: SpawnRequest, turn: int) -> JobSpec:
        """The definition: its job's, with a goal and a budget of its own."""
        own, ledger = self._order.spec, self._moment.job.ledger
        spawn = own.spawn
        assert spawn is not None, "only then it is offered"
        lent, deadline = request.lent, ledger.own_deadline()
        below = spawn.model_copy(update={"depth": spawn.depth - 1}) if spawn.depth > 1 else None
        workspace = own.workspace
        if own.writable is not None and turn > 1:
            # The version before this statement: the one after it is known only when it has ended.
            workspace = f"holdfast://{self._order.key}@{turn - 1}"
        changed: dict[str, Any] = {
            "id": child.job,
            "goal": request.goal,
            "result": request.result,
            "workspace": workspace,
            "model": spawn.model or own.model,
            "budget": Budget(
                turns=lent.turns or 1,
                tokens=lent.tokens or 1,
                usd=lent.usd or own.budget.usd,
                wall_seconds=max(ledger.wall_left(), LEAST_WALL),
                deadline=(
                    None if deadline is None else datetime.fromtimestamp(deadline, UTC).isoformat()
                ),
            ),
            # A sub-job is not begun anew by itself: no batch holds it.
            "retry": own.retry.model_copy(update={"times": Retry().times}),
            "check": None,
            "spawn": below,
            "parent": self._order.key.job,
        }
        return own.model_copy(update=changed)

    async def end_all(self) -> None:
        """Cancel those that are open still, and book what they spent."""
        own = self._moment.job.ledger.sub_jobs
        self.look()
        own.end(self.inbox)
        left = tuple(one for one in own.of(str(self._order.key)) if one.end is None)
        if not left:
            return
        ended: SubJobEnds = await result_of(
            "end_sub_jobs",
            OpenSubJobs(jobs=tuple(_key(one.job) for one in left)),
            SubJobEnds,
            id="end-sub-jobs",
            limit=CALL_LIMIT,
            summary=f"end {len(left)} sub-jobs",
        )
        own.end(ended.ends)

    @property
    def spent(self) -> Amount | None:
        """What the job's own sub-jobs spent; None if it has none."""
        own, key = self._moment.job.ledger.sub_jobs, str(self._order.key)
        return own.spent(key) if own.of(key) else None

    async def tell_parent(self, outcome: JobOutcome) -> None:
        """Tell the job whose sub-job this is that it has ended, if that runs still."""
        parent, lent = self._order.spec.parent, outcome.lent or Amount()
        if not parent:
            return
        handle = workflow.get_external_workflow_handle(
            job_workflow_id(JobKey(batch=self._order.key.batch, job=parent))
        )
        end = SubJobEnd(
            job=str(outcome.key),
            status=outcome.status.value,
            reason=outcome.reason,
            turns=outcome.turns + (lent.turns or 0),
            tokens=outcome.usage.total + (lent.tokens or 0),
            usd=round(outcome.cost_usd + (lent.usd or 0.0), 9),
        )
        with contextlib.suppress(FailureError):
            await handle.signal("sub_job_ended", end)


def name_of(order: JobOrder, request: SpawnRequest) -> str:
    """The name of a sub-job of the job that ``order`` runs: no other run of that order, and no
    other statement, has another one for the same question.
    """
    asked = digest_of([str(order.key), order.names or order.id, request.call, request.number])
    return sub_job_name(order.key.job, asked)


def _key(name: str) -> JobKey:
    batch, _, job = name.partition("/")
    return JobKey(batch=batch, job=job)
