"""The stretches of statements between effects: each is run once, and its verdict obeyed from then
on.

How long a stretch runs, and so whether it ends in time, is not the same each time: live it is run
and its verdict recorded, a replay reads the recorded verdict first.
"""

from __future__ import annotations

import sys

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.verdicts import RecordedVerdict
    from runtime.interpreter.host import Answer, Effect
    from runtime.interpreter.run import InterpreterDrift, Stretch, Verdict, VerdictStatus
    from runtime.job.statement import JobStatement
    from workflows.calling import recorded
    from workflows.continuing import Run
    from workflows.moment import Moment
    from workflows.replaying import Replaying


class Stretches:
    """Runs the stretches of a run's statements, whose time ``this_run`` counts."""

    def __init__(self, moment: Moment, replaying: Replaying, this_run: Run) -> None:
        self._moment, self._replaying, self._this_run = moment, replaying, this_run

    async def run(self, statement: JobStatement, answer: Answer | None) -> Effect | None:
        """Run the next stretch, after ``answer``; the effect that it came to, None if the
        statement has ended or the stretch was cut.

        Raises:
            InterpreterDrift: if a replay comes to something else than was recorded.
        """
        while True:
            # A reset in mid-statement goes back to a verdict's workflow task: the gate stands
            # before each.
            await self._replaying.gate()
            stretch: Stretch | None = None
            made: RecordedVerdict | None = None
            if not workflow.unsafe.is_replaying():
                known = self._moment.answers.foreseen(len(statement.effects))
                if known is None or known.status is VerdictStatus.OK:
                    stretch = statement.advance(answer, known)
                    known = stretch.verdict
                made = self._with_look(known)
            verdict = await recorded(made)
            # A replay found no recorded verdict and had run nothing: it is live from here on, so
            # once more.
            if verdict is None:
                continue
            self._recall_look(verdict)
            if verdict.status is VerdictStatus.OK and stretch is None:
                stretch = statement.advance(answer, verdict)
                if stretch.verdict.digest != verdict.digest:
                    at = self._moment.job.turn
                    raise InterpreterDrift(
                        f"turn {at}: the replayed statement gave {stretch.verdict.status}"
                        f" {stretch.verdict.digest}, recorded was {verdict.digest}: this worker has"
                        f" Python {sys.version_info.major}.{sys.version_info.minor}; have one with"
                        " the Python and the build that the run began with take it to where it"
                        f" continues as new, or fork the job from before statement {at}"
                    )
            statement.settle(verdict)
            self._this_run.statement_ms += verdict.ms
            self._moment.ran(verdict.ms / 1000)
            return (
                stretch.effect
                if stretch is not None and verdict.status is VerdictStatus.OK
                else None
            )

    def _with_look(self, verdict: Verdict) -> RecordedVerdict:
        """A verdict with what the look before it saw, if no verdict since has it."""
        at = self._moment.unrecorded
        events = self._this_run.looked if at else 0
        return RecordedVerdict(**verdict.__dict__, at=at, events=events)

    def _recall_look(self, verdict: RecordedVerdict) -> None:
        """Know what the look before a verdict saw, as the history has it: the workflow task of the
        look may have been cut, see ``Moment``.
        """
        if verdict.at:
            self._moment.recall(verdict.at)
            self._this_run.recall(verdict.events)
        # Also where a worker of before recorded it, who says nothing of the look.
        self._moment.unrecorded = 0.0
