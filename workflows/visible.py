"""What Temporal's own UI and CLI show of a job: search attributes, and the current details.

An upsert is an event of the history, so there are few: as a run begins and ends, as the job begins
and ends to wait for somebody, and every ``TOLD_TURNS`` turns.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from runtime.base.fences import one_line
    from runtime.base.redaction.computed import without_keys
    from runtime.base.search_attributes import Attribute
    from runtime.base.standings import PAUSED, RUNNING, WAITING
    from runtime.job.ledger import Ledger
    from runtime.job.phases import Phase
    from runtime.job.stops import JobStatus, Stop
    from workflows.messages import JobOrder
    from workflows.moment import Moment
    from workflows.patches import patched

LINE_CHARS = 60
"""Characters of a statement's or a reason's line."""

MODEL_CHARS = 200

TOLD_TURNS = 25
"""After so many turns the attributes tell anew of turns and cost."""

TOLD = "stands-upserted"
"""The patch by which a job that runs tells of itself; its attributes stood as it began, before."""

_STATUS = SearchAttributeKey.for_keyword(Attribute.STATUS)
_TURNS = SearchAttributeKey.for_int(Attribute.TURNS)
_COST = SearchAttributeKey.for_float(Attribute.COST)

_WAITS = {Phase.APPROVAL: WAITING, Phase.ASLEEP: WAITING, Phase.PAUSED: PAUSED}
"""What a job stands as in phases that may last for days."""


class Visible:
    """What one run shows of its job: its ``phase``, how far it is and how it ended. A run that
    another goes on in hands the attributes down.
    """

    def __init__(self, order: JobOrder, moment: Moment) -> None:
        self._order, self._moment = order, moment
        attributes = workflow.info().typed_search_attributes
        self._searchable = attributes.get(_STATUS) is not None
        self._status = attributes.get(_STATUS) or RUNNING
        self._turn = attributes.get(_TURNS) or 0
        self.phase = Phase.STARTING

    @property
    def phase(self) -> Phase:
        """What the job does now."""
        return self._phase

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self._phase = phase
        self._tell_phase()

    def began(self, *, searchable: bool) -> None:
        """The job begins, on a server that has the search attributes if it is ``searchable``."""
        self._searchable = searchable
        if not searchable:
            return
        key, model = self._order.key, self._order.spec.model.name
        keyword = SearchAttributeKey.for_keyword
        workflow.upsert_search_attributes(
            [
                keyword(Attribute.BATCH).value_set(key.batch),
                keyword(Attribute.JOB).value_set(key.job),
                keyword(Attribute.MODEL).value_set(model[:MODEL_CHARS]),
                _STATUS.value_set(JobStatus.RUNNING.value),
            ]
        )

    def ended(self, stop: Stop) -> None:
        """The job ends."""
        job = self._moment.job
        reason = f": {line_of(stop.reason)}" if stop.status is not JobStatus.SUCCEEDED else ""
        workflow.set_current_details(f"{stop.status} after turn {job.turns}{reason}")
        if self._searchable:
            self._tell(stop.status.value, job.turns, job.ledger)

    def _tell_phase(self) -> None:
        job, phase = self._moment.job, self._phase
        turn, last = job.turn, line_of(job.last_statement)
        workflow.set_current_details(
            f"turn {turn}: {phase}" + (f"; last statement: {last}" if last else "")
        )
        status = _WAITS.get(phase, RUNNING)
        told = status == self._status and turn < self._turn + TOLD_TURNS
        # As a run starts, the job is not loaded that it goes on with: it has no turns and cost yet.
        starts = phase is Phase.STARTING
        # The patch is asked last: only where the attributes are upserted.
        if told or starts or not self._searchable or not patched(TOLD):
            return
        self._status, self._turn = status, turn
        self._tell(status, turn, job.ledger)

    def _tell(self, status: str, turns: int, ledger: Ledger) -> None:
        workflow.upsert_search_attributes(
            [
                _STATUS.value_set(status),
                _TURNS.value_set(turns),
                _COST.value_set(ledger.cost_usd),
            ]
        )


def turn_line(turn: int, statement: str) -> str:
    """What a turn's model call is called: ``turn 41: x = 1``, by the statement that it follows."""
    last = line_of(statement)
    return f"turn {turn}: {last}" if last else f"turn {turn}"


def line_of(text: str) -> str:
    """The first line of a text that says something, masked, on one line, of at most ``LINE_CHARS``
    characters.
    """
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    # Cut before it is masked too: what masking costs goes by the length.
    told = one_line(without_keys(line[: 40 * LINE_CHARS]))
    return told if len(told) <= LINE_CHARS else f"{told[: LINE_CHARS - 1]}…"
