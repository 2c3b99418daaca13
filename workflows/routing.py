"""By which task queues a job's calls go: those of models and tools that have a limit by queues of
their own, on which the server keeps the rate for all batches, and is fair to each.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import Priority

with workflow.unsafe.imports_passed_through():
    from runtime.base.spec.limits import fairness_key
    from workflows.messages import JobOrder


class Routing:
    """The routes of one job. What has no limit goes as ever, with no word about it in a history."""

    def __init__(self, order: JobOrder) -> None:
        self._order = order

    def of_model(self, model: dict[str, Any] | None) -> dict[str, Any]:
        """How a call of a model goes, in the words of ``calling.start``."""
        routes = self._order.routes
        if routes is None or model is None:
            return {}
        return self._by(routes.model(model["name"]))

    def of_tool(self, target: str) -> dict[str, Any]:
        """How a call of a tool goes."""
        routes = self._order.routes
        return {} if routes is None else self._by(routes.tool(target))

    def _by(self, queue: str | None) -> dict[str, Any]:
        routes = self._order.routes
        if queue is None or routes is None:
            return {}
        key = fairness_key(self._order.key.batch)
        return {
            "queue": queue,
            "priority": Priority(priority_key=routes.priority, fairness_key=key),
        }
