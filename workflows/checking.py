"""Having the result of a job that succeeded given a score, by the tool that its jobs file names."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.contracts import Checked, CheckRequest
    from runtime.base.roles import Role
    from runtime.job.stops import JobStatus, Stop
    from workflows.calling import result_of
    from workflows.failing import cause_of, given_up
    from workflows.limits import CHECK_LIMIT, CHECK_TRIES, COMMAND_SLACK, TOOL_LIMIT
    from workflows.messages import JobOrder
    from workflows.moment import Moment
    from workflows.replaying import Replaying
    from workflows.routing import Routing


class Checking:
    """The check of one job's result. ``checked`` is what it says; nothing, where there is none.

    That there is no score changes no status.
    """

    def __init__(
        self, order: JobOrder, moment: Moment, routing: Routing, replaying: Replaying
    ) -> None:
        self._order, self._moment = order, moment
        self._routing, self._replaying = routing, replaying
        self.checked = Checked()

    def wants(self, stop: Stop) -> bool:
        """Whether the result of a job that ends so is to be checked.

        Of a record whose effects are not made again, no score is asked for.
        """
        if self._order.spec.check is None or stop.status is not JobStatus.SUCCEEDED:
            return False
        replay = self._replaying.order
        return replay is None or not replay.answers

    async def check(self, stop: Stop) -> None:
        """Have the result checked."""
        spec, moment = self._order.spec, self._moment
        assert spec.check is not None, "only then it is wanted"
        own = spec.writable is not None
        until = moment.until_deadline()
        # The tool's own limit ends its process, and says so; the activity's is for what else hangs.
        seconds = spec.check.timeout or CHECK_LIMIT.total_seconds()
        limit = timedelta(seconds=seconds * (spec.check.retries + 1)) + COMMAND_SLACK
        request = CheckRequest(
            key=self._order.key,
            turn=moment.job.turn,
            check=spec.check.model_copy(update={"timeout": seconds}),
            result=stop.result,
            workspace="" if own else spec.workspace,
            version=moment.job.desk.workspace if own else "",
            secrets=spec.secrets,
            redact=spec.redact,
        )
        try:
            with moment.ends_by_a_cancel():
                self.checked = await result_of(
                    "check_result",
                    request,
                    Checked,
                    id="check",
                    limit=min(limit, TOOL_LIMIT),
                    until=until,
                    summary=f"check the result with {spec.check.name}",
                    tries=CHECK_TRIES,
                    **self._routing.to(Role.TOOLS),
                )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            late = given_up(error) and until is not None
            why = moment.job.ledger.deadline_reason() if late else cause_of(error)
            self.checked = Checked(remarks=f"the check could not be run: {why}")
