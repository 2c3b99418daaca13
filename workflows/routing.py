"""By which task queues a job's calls go: those of models and tools that have a limit by queues of
their own, on which the server keeps the rate for all batches, and is fair to each; the others,
where workers have roles, by the queues of these.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from runtime.base.roles import Role
    from runtime.base.spec.limits import Routes, fairness_key
    from workflows.messages import JobOrder


class Routing:
    """The routes of one job. What has no limit goes as ever, with no word about it in a history,
    where workers have no roles.
    """

    def __init__(self, order: JobOrder) -> None:
        self._order = order

    def to(self, role: Role) -> dict[str, Any]:
        """How a call goes that has no limit, in the words of ``calling.start``."""
        return by_role(self._order.routes, role, self._order.key.batch)

    def of_model(self, model: dict[str, Any] | None, *, recorded: bool = False) -> dict[str, Any]:
        """How a call of a model goes, whose reply may be ``recorded``."""
        routes, limited = self._order.routes, None
        if routes is not None and model is not None and not recorded:
            limited = routes.model(model["name"])
        return self._by(limited) or self.to(Role.MODELS)

    def of_tool(self, target: str, *, recorded: bool = False) -> dict[str, Any]:
        """How a call of a tool goes, whose result may be ``recorded``.

        Raises:
            ApplicationError: as ``by_name``.
        """
        routes, way = self._order.routes, dict[str, Any]()
        if not recorded:
            limited = None if routes is None else routes.tool(target)
            way = self.by_name(target) or self._by(limited)
        return way or self.to(Role.TOOLS)

    def of_change(self, tool: str | None, *, recorded: bool) -> dict[str, Any]:
        """How an effect on the workspace goes, which a ``tool`` may have; otherwise as ``of_tool``,
        but that there are no limits.

        Raises:
            ApplicationError: as ``by_name``.
        """
        if tool is None:
            return self.to(Role.SANDBOXES)
        return (not recorded and self.by_name(tool)) or self.to(Role.TOOLS)

    def of_reading(self, *, servers: bool) -> dict[str, Any]:
        """How readings go, of which some may ask MCP ``servers``."""
        return self.to(Role.TOOLS if servers else Role.READS)

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
        return _way(queue, self._order.routes, self._order.key.batch)


def by_role(routes: Routes | None, role: Role, batch: str) -> dict[str, Any]:
    """How a call of a role goes for a batch; nothing if it goes by the batch's own queue."""
    return _way(None if routes is None else routes.role(role), routes, batch)


def _way(queue: str | None, routes: Routes | None, batch: str) -> dict[str, Any]:
    # Nothing at all rather than a default: histories of before have no queue and no priority.
    if queue is None or routes is None:
        return {}
    key = fairness_key(batch)
    return {"queue": queue, "priority": Priority(priority_key=routes.priority, fairness_key=key)}
