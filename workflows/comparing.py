"""Comparing a replay with the record that it follows: statements as they end, nodes and events
after the next tick.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.record import RecordedTurn
    from runtime.context.feed import Delta
    from runtime.job.divergence import (
        Divergence,
        compare_events,
        compare_executions,
        compare_nodes,
        summed_up,
    )
    from runtime.job.stops import JobFailed
    from workflows.messages import Origin


class Comparison:
    """What differs. ``divergences`` are those that no step tells yet.

    ``nodes`` and ``events`` are what the last statement that was compared left in the record, to be
    compared after the next tick; ``nodes_at_end``: in the record, there was none.
    """

    def __init__(self) -> None:
        self.divergences: tuple[Divergence, ...] = ()
        self.nodes: tuple[dict[str, Any], ...] | None = None
        self.nodes_at_end = False
        self.events: tuple[dict[str, Any], ...] | None = None

    def begin(self, origin: Origin) -> None:
        """Go on with what the run before was in."""
        self.divergences, self.nodes = origin.divergences, origin.nodes
        self.nodes_at_end = origin.nodes_at_end
        self.events = origin.events

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run must know, as fields of its ``Origin``."""
        return {
            "divergences": self.divergences,
            "nodes": self.nodes,
            "nodes_at_end": self.nodes_at_end,
            "events": self.events,
        }

    def forget(self) -> None:
        """Another record is followed from here on."""
        self.divergences, self.nodes, self.events = (), None, None

    def ticked(self, turn: int) -> tuple[str, ...]:
        """The nodes that the tick of ``turn`` reached in the record, as far as its events tell."""
        return tuple(
            event["obj_id"]
            for event in self.events or ()
            if event["type"] == "tick_applied" and event["id"].startswith(f"{turn}.")
        )

    def statement(
        self, turn: int, now: dict[str, Any] | None, record: RecordedTurn, *, restoring: bool
    ) -> None:
        """Compare what the statement of ``turn`` came to ``now`` with its record.

        Raises:
            JobFailed: if a turn that is to be restored came to something else.
        """
        if record.execution is None and record.nodes is None:
            return
        self._add(compare_executions(turn, record.execution, now), restoring=restoring)
        # Not compared yet: the record holds them as they were after the tick that is still to come.
        self.nodes, self.nodes_at_end, self.events = record.nodes, record.ended, record.events

    def context(
        self,
        turn: int,
        changed: tuple[dict[str, Any], ...],
        happened: tuple[dict[str, Any], ...],
        *,
        restoring: bool,
        at_end: bool = False,
    ) -> tuple[Delta, ...]:
        """Compare what the statement of ``turn`` made of the nodes, what ``happened`` to the
        context, and the tick after it, which there is not ``at_end``; what to tell the model.

        Where only one of both timelines ends after the turn, it is not known what the other's nodes
        were there.

        Raises:
            JobFailed: if a turn that is to be restored came to something else.
        """
        expected, self.nodes = self.nodes, None
        events, self.events = self.events, None
        # Taken out above in any case: nodes are compared at the tick after their statement or
        # never.
        if expected is not None and self.nodes_at_end is at_end:
            of_nodes = compare_nodes(turn, expected, changed)
            self._add(of_nodes, restoring=restoring)
            if events is not None:
                known = {one.subject for one in of_nodes} | summed_up(expected, changed)
                self._add(compare_events(turn, events, happened, known), restoring=restoring)
        return tuple(Delta("replay", "replay", "replay", one.line()) for one in self.divergences)

    def told_in(self, execution: dict[str, Any] | None) -> dict[str, Any] | None:
        """The record of the last statement's execution, with its divergences."""
        if not self.divergences:
            return execution
        return {
            **(execution or {}),
            "divergences": [one.model_dump(mode="json") for one in self.divergences],
        }

    def archived(self) -> None:
        """The divergences so far are archived."""
        self.divergences = ()

    def _add(self, divergences: tuple[Divergence, ...], *, restoring: bool) -> None:
        if divergences and restoring:
            raise JobFailed(f"the record cannot be restored: {divergences[0].line()}")
        self.divergences += divergences
