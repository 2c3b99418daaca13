"""``JobWorkflow``: one durable agent job.

``work`` reads like docs/design.md section 3; each word is a method, its own or one of its parts'.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import Decision, JobBegan, JobBegin, JobEnd
    from activities.sub_job_contracts import Spawned
    from runtime.base.tokens import encoding
    from runtime.base.values import StepRef
    from runtime.base.workflow_ids import END
    from runtime.context.sub_job_end import SubJobEnd
    from runtime.history.events import RequestSource
    from runtime.interpreter.dialect import Dialect
    from runtime.interpreter.host import Answer, Effect, EffectKind
    from runtime.job.job import Job
    from runtime.job.phases import Phase
    from runtime.job.purse import Granted
    from runtime.job.statement import JobStatement
    from runtime.job.stops import WITHDRAWN, BudgetSpent, Cause, JobFailed, JobStatus, Stop
    from workflows.approving import Approving
    from workflows.asking import Asking
    from workflows.calling import result_of
    from workflows.cancelling import Cancelling
    from workflows.checking import Checking
    from workflows.continuing import (
        CHECKPOINT_TURNS,
        Run,
        check_build,
        check_interpreter,
        fit_an_order,
        load,
        save,
    )
    from workflows.cutting import Cuts
    from workflows.doors import Ordered
    from workflows.effects import Effects
    from workflows.failing import stopped_by
    from workflows.heard import Heard
    from workflows.messages import Hold, JobOrder, JobOutcome, JobProgress, Note, Origin
    from workflows.moment import Moment
    from workflows.patches import (
        AS_IT_WAS,
        ASKED,
        EARLIER,
        EXACT,
        PACED,
        RESTS,
        TICKED,
        UNREAD,
        dialect,
        patched,
    )
    from workflows.pausing import Pausing
    from workflows.preparing import Preparing
    from workflows.prompting import Prompting
    from workflows.replaying import Replaying
    from workflows.routing import Routing
    from workflows.sleeping import Asleep
    from workflows.slices import Slices
    from workflows.stretches import Stretches
    from workflows.sub_jobs import SubJobs
    from workflows.visible import Visible, line_of

BOUNDED_SCHEMAS = "checks-by-schemas-are-bounded"
"""The patch since which schemas and results are refused that no bounded check can pass."""

BOUNDED_FUNCTIONS = "functions-are-bounded-in-what-they-make"
"""The patch since which functions of the standard library that the host computes fail where they
would make too much.
"""

ENDS_ANYWAY = "a-cancelled-end-ends"
"""The patch since which a job that is cancelled while it ends has its end archived."""


@workflow.defn(name="JobWorkflow", sandboxed=False)
class JobWorkflow(Ordered):
    """One run of one job."""

    @workflow.init
    def __init__(self, order: JobOrder) -> None:
        origin = order.origin
        self.order = order
        self.seed = origin.seed if origin is not None else str(order.key)
        job = Job(
            order.spec,
            key=self.seed,
            started=workflow.time(),
            count=encoding(order.spec.encoding).count,
        )
        self.moment = Moment(job, origin)
        self.cancelling = Cancelling(self.moment)
        # In the order in which they came: a set has none.
        self.heard = Heard(origin.heard if origin is not None else ())
        self.visible = Visible(order, self.moment)
        self.routing = Routing(order)
        self.effects = Effects(order.key, order.spec, self.moment, self.routing)
        self.replaying = Replaying(order.key, self.moment)
        self.approving = Approving(order.key, order.spec, self.moment)
        self.cuts = Cuts(self.moment)
        self.preparing = Preparing(self.moment, self.effects, self.cuts)
        self.this_run = Run()
        self.stretches = Stretches(self.moment, self.replaying, self.this_run)
        self.restored_by: Dialect | None = None
        self.checking = Checking(order, self.moment, self.routing, self.replaying)
        self.slices = Slices(order, self.moment)
        self.prompting = Prompting(
            self.moment,
            self.replaying,
            Asking(order, self.moment, self.routing, self.cuts),
            self.slices,
            self.preparing,
            self.visible,
        )
        self.sub_jobs = SubJobs(order, self.moment, self.slices)
        self.asleep = Asleep(
            *(self.moment, self.effects, self.preparing, self.sub_jobs, self.replaying),
            go_on_if_full=self.go_on_if_full,
        )
        self.pausing = Pausing(order, self.moment)
        self.sub_jobs.holding.change(held=self.pausing.asked)
        # In this order, which decides what a look at several arrivals comes to: a replay has the
        # same.
        self.moment.looking += [
            lambda: self.this_run.look(workflow.info()),
            self.cuts.look,
            self.preparing.look,
            self.slices.look,
            self.sub_jobs.look,
            self.pausing.look,
        ]

    @property
    def job(self) -> Job:
        """The job as it is at this moment."""
        return self.moment.job

    @workflow.run
    async def run(self, order: JobOrder) -> JobOutcome:
        """Turn after turn, until the model finishes, a budget is spent, or the job is cancelled."""
        try:
            if patched(EARLIER):
                stop = await self.cancelling.done(asyncio.ensure_future(self.work()))
            else:
                stop = await self.work()
        except (ActivityError, JobFailed, BudgetSpent, asyncio.CancelledError) as error:
            stop = stopped_by(error, self.job.turn, self.job.ledger, self.moment.now)
        ending = asyncio.ensure_future(self.end(stop))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            # A cancel that comes now must not keep the chain from being closed.
            if not patched(ENDS_ANYWAY):
                raise
            return await ending

    async def work(self) -> Stop:
        """Turn after turn; why no other follows."""
        await self.begin()
        while (stop := await self.stop_before_turn()) is None:
            await self.sub_jobs.find()
            self.ingest()
            await self.tick()
            reply = await self.prompting.call_model()
            clock = self.moment.answers.clock(reply, self.moment.now)
            statement = self.job.receive(reply, clock, dialect(), exact=patched(EXACT))
            if statement is not None:
                statement = await self.executed(statement)
                asleep = self.replaying.fell_asleep(clock, effects=len(statement.effects))
                self.job.record(statement, self.moment.now, asleep)
                self.replaying.wake()
            self.replaying.compare()
            await self.go_on()
        if self.checking.wants(stop):
            self.visible.phase = Phase.ENDING
            await self.checking.check(stop)
        return stop

    @workflow.signal
    def message(self, note: Note) -> None:
        """A user's message; the model sees it at its next turn."""
        if self.heard.is_new(note.id):
            # Only kept: a signal may come in the midst of a turn, which looks at it after its next
            # wait.
            self.moment.arrived.append(note.text)

    @workflow.signal
    def condense(self, note: Note) -> None:
        """A user's wish that older turns be forgotten behind a summary, before the next model
        call.
        """
        if self.heard.is_new(note.id):
            self.moment.condense_arrived = True

    @workflow.signal
    def decide(self, decision: Decision) -> None:
        """A person's answer to whether a call may be made."""
        self.approving.decide(decision)

    @workflow.signal
    def pause(self, note: Note) -> None:
        """A user's wish that no turn begins until the job is to go on, and none of its sub-jobs."""
        if self.heard.is_new(note.id):
            self.pausing.wished = True
            self.sub_jobs.holding.change(held=self.pausing.asked)

    @workflow.signal
    def resume(self, note: Note) -> None:
        """A user's wish that a paused job goes on, and the sub-jobs that were paused with it."""
        if self.heard.is_new(note.id):
            self.pausing.wished = self.pausing.held = False
            self.sub_jobs.holding.change(held=self.pausing.asked)

    @workflow.signal
    def hold(self, hold: Hold) -> None:
        """The parent is paused, or goes on; so do the sub-jobs of this one."""
        if self.heard.is_new(hold.id):
            self.pausing.held = hold.held
            self.sub_jobs.holding.change(held=self.pausing.asked)

    @workflow.signal
    def grant(self, granted: Granted) -> None:
        """The batch's answer to a wish for more of its budget."""
        self.slices.arrived.append(granted)

    @workflow.signal
    def sub_job_ended(self, end: SubJobEnd) -> None:
        """The end of a sub-job; the model sees it at its next turn."""
        self.sub_jobs.arrived.append(end)

    @workflow.query
    def progress(self) -> JobProgress:
        """Where the job stands now."""
        job, origin = self.job, self.order.origin
        stood = origin.stood if origin is not None else None
        # A run that goes on has not loaded the job yet, or does nothing of its own.
        if stood is not None and self.visible.phase is Phase.STARTING:
            return stood.model_copy(update={"paused": self.pausing.asked})
        return JobProgress(
            status=JobStatus.RUNNING,
            turn=job.turn,
            phase=self.visible.phase,
            usage=job.ledger.usage,
            cost_usd=job.ledger.cost_usd,
            statement=job.last_statement,
            paused=self.pausing.asked,
        )

    async def begin(self) -> None:
        """Archive the job's definition, or take up the state in which another run left the job."""
        origin = self.order.origin
        continued = workflow.info().continued_run_id is not None
        if origin is not None and origin.checkpoint is not None:
            self.moment.job = await load(self.order.spec, origin.checkpoint)
            if not continued:
                # A fork is a job of its own: its time runs from its own start.
                self.job.ledger.started, self.job.ledger.worked = workflow.time(), 0.0
        # After the state is loaded: it has the ledger that the order's grants go to.
        self.slices.begin()
        self.sub_jobs.begin()
        self.replaying.begin(origin)
        self.moment.begin()
        self.this_run.began()
        if continued:
            return
        begun = result_of(
            "begin_job",
            JobBegin(
                key=self.order.key,
                definition=self.order.spec.model_dump(mode="json"),
                fork=origin.replay.id if origin is not None and origin.replay is not None else None,
                order=self.order.id,
                first_run=workflow.info().first_execution_run_id,
            ),
            JobBegan,
            id="begin",
            summary="archive the definition",
        )
        began: JobBegan = await self.moment.after(begun, lambda began: began.worked)
        # The recorded answer, not this process's own: so a worker with another build refuses the
        # replay.
        check_interpreter(began.interpreter)
        check_build(began.build, began.replay_version)
        self.visible.began(searchable=began.searchable)
        if origin is None or origin.checkpoint is None:
            # Before the workspace is opened: the job is made anew with what they offer.
            await self.ask_servers()
            self.job.places.prices = began.prices
            await self.open_workspace()

    async def open_workspace(self) -> None:
        """Take in the files that the job's own workspace begins with, if it has one."""
        if self.order.spec.writable is not None:
            opening = self.effects.open(self.replaying.begins_from)
            opened = await self.moment.after(opening, lambda opened: opened.worked)
            self.job.desk.workspace = opened.version

    async def ask_servers(self) -> None:
        """Begin with what the job's MCP servers offer, which is asked once: its record has it."""
        if not self.order.spec.mcp:
            return
        listed = await self.moment.after(
            self.effects.offered(self.replaying.begins_from), lambda listed: listed.worked
        )
        ledger = self.job.ledger
        self.moment.job = Job(
            self.order.spec,
            key=self.seed,
            started=ledger.started,
            count=encoding(self.order.spec.encoding).count,
            servers=listed.listings,
        )
        self.job.ledger = ledger
        self.sub_jobs.begin()

    def ingest(self) -> None:
        """Begin a turn with the messages that arrived."""
        moment = self.moment
        room = self.job.room_for(moment.inbox) if patched(PACED) else len(moment.inbox)
        moment.heard, moment.inbox = moment.answers.messages(moment.inbox, room)
        self.job.ingest(moment.heard, moment.now, self.sub_jobs.take())
        asked, moment.condense_asked = moment.answers.wish(moment.condense_asked)
        if asked:
            self.job.request_condensation(RequestSource.USER)

    async def tick(self) -> None:
        """Bring due nodes up to date: one activity for all that must be read, none if nothing
        must.
        """
        now = self.moment.answers.tick_at(self.moment.now)
        await self.preparing.apply(now)
        due = self.job.due_reads(now)
        results: tuple[Any, ...] = ()
        if due:
            self.visible.phase = Phase.READING
            read = self.effects.tick(due, self.job.turn)
            results = (await self.moment.after(read, lambda read: read.worked)).results
            if self.moment.answers.effect is not None and patched(UNREAD):
                told = self.replaying.ticked(self.job.turn)
                ticked = self.job.graph.reached(due, told) if patched(TICKED) else ()
                results += self.job.graph.unread(results, ticked)
        self.job.apply_tick(results)
        self.replaying.compare_context(self.job.changed_nodes, self.job.turn - 1)
        await self.preparing.begin(now)

    async def executed(self, statement: JobStatement) -> JobStatement:
        """The statement, run to its end. One that is restored and came to something else in its
        record went by other rules there, as in a release of before: it is run by the newest by
        which it comes to that, and those behind it by the same.
        """
        # One that goes on in its midst, too: its first effects were asked for by those rules.
        if self.restored_by is not None and self.replaying.restores:
            statement = statement.by(self.restored_by)
        known = dict(self.job.ledger.sub_jobs.known)
        await self.execute(statement)
        if self.replaying.is_as_recorded(statement) or not patched(AS_IT_WAS):
            return statement
        tried = statement.dialect
        # By those once more at last: where it comes to that by none, what differs by them is told.
        for rules in (*(one for one in reversed(Dialect) if one is not tried), tried):
            statement = statement.by(rules)
            self.job.forget_spawned(known)
            await self.execute(statement)
            if self.replaying.is_as_recorded(statement):
                self.restored_by = rules
                break
        return statement

    async def execute(self, statement: JobStatement) -> None:
        """Run a statement: stretches between effects, each with a durable verdict."""
        self.visible.phase = Phase.EXECUTING
        statement.checks(lambda: patched(BOUNDED_SCHEMAS))
        statement.computes(lambda: patched(BOUNDED_FUNCTIONS))
        self.replaying.begin_statement()
        if patched(ASKED):
            statement.follows(self.moment.answers.execution)
        answer: Answer | None = None
        while not statement.ended:
            effect = await self.stretches.run(statement, answer)
            answer = None
            if effect is None:
                # The statement has ended, or the stretch was cut and goes on in another activation.
                continue
            number = len(statement.effects)
            decision = await self.approved(effect, number)
            performed = (
                self.spawn(effect, number)
                if effect.kind is EffectKind.SPAWN
                else self.effects.perform(effect, self.job.turn, number, decision)
            )
            result, worked = await self.moment.after(performed, lambda done: done[1])
            # What a record answered took its time when that was made.
            live = self.moment.answers.effect is None
            answer = statement.answered(effect, result, worked if live else None)

    async def spawn(self, effect: Effect, number: int) -> tuple[Spawned, float]:
        """Start a sub-job, with what no summary holds that is written in the background."""
        if not self.job.ledger.can_lend(effect.request.lent):
            await self.preparing.released()
        return await self.sub_jobs.start(effect, self.job.turn, number)

    async def approved(self, effect: Effect, number: int) -> Decision | None:
        """A person's decision on a call, if one is asked about it: the statement waits as long."""
        if not self.approving.wants(effect):
            return None
        self.visible.phase = Phase.APPROVAL
        decision = await self.approving.decided(effect, self.job.turn, number)
        self.visible.phase = Phase.EXECUTING
        return decision

    async def stop_before_turn(self) -> Stop | None:
        """A stop, if no turn follows; else the job has slept, if its last statement asked for it.

        The gate is first: after a reset, the time that has passed since is not the job's.
        """
        if self.order.withdrawn:
            return WITHDRAWN
        await self.replaying.gate()
        stop = self.job.stop(self.moment.now) or await self.replaying.begin_turn()
        # Of a record that has just ended, no time was asked.
        stop = stop or self.job.stop(self.moment.now)
        stop = stop or await self.rest()
        if stop is None and self.slices.needed(self.job.turn):
            self.visible.phase = Phase.GRANT
            await self.slices.granted(self.job.turn)
            stop = await self.replaying.stop_behind_a_wait()
            if patched(RESTS):
                stop = stop or await self.rest()
        if stop is None:
            await self.slices.ahead(self.job.turn)
        if stop is not None or self.job.sleeping.state is None:
            return stop
        self.visible.phase = Phase.ASLEEP
        stop = await self.asleep.sleep() or await self.rest()
        return stop or await self.replaying.begin_turn_anew()

    async def rest(self) -> Stop | None:
        """Wait as long as the job is paused; a stop, if it outlives its deadline meanwhile."""
        stop: Stop | None = None
        while stop is None and self.pausing.paused:
            self.visible.phase = Phase.PAUSED
            await self.pausing.wait()
            stop = await self.replaying.stop_behind_a_wait()
        return stop

    async def go_on(self) -> None:
        """Between two turns: a checkpoint now and then, and on from it in another run if this one
        is full.
        """
        if self.job.stop(self.moment.now) is not None or self.moment.parent is None:
            return
        await self.go_on_if_full()
        # A run archives one checkpoint of a turn: of a turn after which the job sleeps, the one
        # with which it ends.
        if self.job.turn % CHECKPOINT_TURNS == 0 and self.job.sleeping.state is None:
            await save(self.job, self.order.key, self.moment.parent)

    async def go_on_if_full(self) -> None:
        """On in another run, from a checkpoint of this moment, if this one is full."""
        if self.moment.parent is None or not self.this_run.is_full(workflow.info().task_timeout):
            return
        # Turns take up what waits meanwhile.
        if fit_an_order(self.moment.inbox) or not patched(PACED):
            await self.go_on_in_another_run(self.moment.parent)

    async def go_on_in_another_run(self, parent: StepRef) -> None:
        """Continue as new."""
        await self.preparing.settle()
        saved = await save(self.job, self.order.key, parent)
        # Handlers that are under way would be lost with the run.
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self.sub_jobs.holding.told_all()
        if patched(EARLIER):
            await self.cancelling.before_the_end()
        origin = Origin(
            checkpoint=saved,
            parent=parent,
            seed=self.seed,
            # Also what no look has seen: the next run has no other way to hear of it.
            inbox=(*self.moment.inbox, *self.moment.arrived),
            heard=self.heard.ids,
            condense=self.moment.condense_asked or self.moment.condense_arrived,
            ended=self.sub_jobs.carried,
            through=self.moment.carried,
            # A statement may be long, and nobody is shown more of it than this.
            stood=self.progress().model_copy(
                update={"statement": line_of(self.job.last_statement)}
            ),
            **self.replaying.carried,
        )
        carried = {
            "origin": origin,
            **self.slices.carried,
            **self.pausing.carried,
            **self.sub_jobs.holding.carried,
        }
        versioned = workflow.info().get_current_deployment_version() is not None
        # Where workers are versioned, a job takes up the current release here, at a checkpoint, and
        # nowhere else.
        workflow.continue_as_new(
            self.order.model_copy(update=carried),
            initial_versioning_behavior=(
                workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE if versioned else None
            ),
        )

    async def end(self, stop: Stop) -> JobOutcome:
        """Close the archive's chain and report."""
        self.visible.phase = Phase.ENDING
        # Before the end is archived: what they spent stands in it.
        await self.sub_jobs.end_all()
        await self.preparing.settle()
        end: StepRef = await result_of(
            "end_job", self.close(stop), StepRef, id=END, summary=stop.status
        )
        job = self.job
        self.preparing.stop()
        self.visible.ended(stop)
        outcome = JobOutcome(
            key=self.order.key,
            run=workflow.info().run_id,
            status=stop.status,
            reason=stop.reason,
            turns=job.turns,
            usage=job.ledger.usage,
            cost_usd=job.ledger.cost_usd,
            end=end,
            score=self.checking.checked.score,
            cause=(stop.cause or Cause.ERROR) if stop.status is JobStatus.FAILED else "",
            lent=self.sub_jobs.spent,
            taken_back=self.replaying.taken_back,
        )
        # Last, so that the parent hears of an end that is in the archive.
        await self.sub_jobs.tell_parent(outcome)
        return outcome

    def close(self, stop: Stop) -> JobEnd:
        """Close the job's record: what the archive is to hold of its end."""
        job = self.job
        execution, nodes = job.closing()
        self.replaying.compare_context(nodes, job.turn, at_end=True)
        return JobEnd(
            key=self.order.key,
            turn=job.turn,
            parent=self.moment.parent,
            status=stop.status.value,
            reason=stop.reason,
            result=stop.result,
            hand_patch=stop.patch,
            usage=job.ledger.usage,
            cost_usd=job.ledger.cost_usd,
            execution=self.replaying.told_in(execution),
            nodes=nodes,
            condensations=job.condensing.taken,
            events=job.happenings.events,
            workspace=job.desk.workspace,
            score=self.checking.checked.score,
            remarks=self.checking.checked.remarks,
            lent=self.sub_jobs.spent,
            # Also what no look has seen: nothing is decided by how many they are.
            unread=len(self.moment.inbox) + len(self.moment.arrived),
            redact=self.order.spec.redact,
        )
