"""By which task queues a job's calls go: those of models and tools that have a limit by queues of
their own, on which the server keeps the rate for all batches, and is fair to each.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError

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
        """How a call of a tool goes.

        Raises:
            ApplicationError: as ``by_name``.
        """
        routes = self._order.routes
        return self.by_name(target) or self._by(None if routes is None else routes.tool(target))

    def by_name(self, target: str) -> dict[str, Any]:
        """How a call of a tool goes that certain workers have to make; nothing if any may.

        Raises:
            ApplicationError: if nobody said of which archive these are: others might be wrong.
        """
        routes = self._order.routes
        queue = next((tool.queue for tool in self._order.spec.tools if tool.target == target), None)
        if queue is None:
            return {}
        if routes is None:
            raise ApplicationError(
                f"{target}: calls with queue={queue!r} are for jobs that 'holdfast run' started",
                type="NoRoute",
                non_retryable=True,
            )
        return self._by(routes.named(queue))

    def _by(self, queue: str | None) -> dict[str, Any]:
        routes = self._order.routes
        # Nothing at all rather than a default: histories of before have no queue and no priority.
        if queue is None or routes is None:
            return {}
        key = fairness_key(self._order.key.batch)
        return {
            "queue": queue,
            "priority": Priority(priority_key=routes.priority, fairness_key=key),
        }
