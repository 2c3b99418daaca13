"""How fast the models and tools of a batch may be called, and by which task queues their calls go.

Each account (a pattern of models' names) and each tool with a limit has a task queue, whose rate
the Temporal server keeps for all workers together. What has no limit stays on its batch's queue,
or goes by that of its role where workers have roles.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

from pydantic import Field

from runtime.base.roles import MEMO, Role
from runtime.base.spec.models import Spec

_NAMED, _ROLE = "tools:", "role:"
QUEUES = "queues"
"""What the memo of a workflow calls the queues of what is limited."""

MOST_FAIRNESS_KEY = 64
"""Bytes that Temporal allows a fairness key."""


class Routes(Spec):
    """By which queues a job's limited calls go, and those of tools with a queue of their own; and
    how they stand among others'.

    ``archive`` is the archive's own name: whoever works on a queue archives there.
    """

    archive: str
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    priority: int | None = Field(default=None, ge=1, le=5)
    roles: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether other calls go by the queues of their roles."""

    def model(self, name: str) -> str | None:
        """The queue of a model's calls: that of the longest pattern that its name matches."""
        # Case counts everywhere: ``fnmatch`` would go by the system that it runs on.
        matching = [pattern for pattern in self.models if fnmatchcase(name, pattern)]
        # Of two of one length always the same one: workflow code asks, and must get one answer.
        best = max(matching, key=lambda pattern: (len(pattern), pattern), default=None)
        return None if best is None else f"model:{best}@{self.archive}"

    def tool(self, target: str) -> str | None:
        """The queue of a tool's calls."""
        return f"tool:{target}@{self.archive}" if target in self.tools else None

    def named(self, queue: str) -> str:
        """The task queue of tools whose calls certain workers make."""
        return named_queue(queue, self.archive)

    def role(self, role: Role) -> str | None:
        """The queue of a role's calls; None for the batch's own."""
        return role_queue(role, self.archive) if self.roles else None

    @property
    def queues(self) -> tuple[str, ...]:
        """All that have a limit."""
        models = (f"model:{pattern}@{self.archive}" for pattern in self.models)
        return (*models, *(f"tool:{target}@{self.archive}" for target in self.tools))


def memo_of(routes: Routes | None) -> dict[str, Any]:
    """What the memo of a workflow with these routes says to whoever looks for work: the queues of
    what is limited, and whether calls go by the queues of roles.
    """
    if routes is None:
        return {}
    queues: dict[str, Any] = {QUEUES: list(routes.queues)} if routes.queues else {}
    return queues | ({MEMO: True} if routes.roles else {})


def named_queue(queue: str, archive: str) -> str:
    """The task queue of tools with ``queue``, in the jobs of an archive."""
    return f"{_NAMED}{queue}@{archive}"


def queue_named(task_queue: str) -> str | None:
    """The ``queue`` of the tools whose calls go by a task queue; None if it is no such one."""
    if not task_queue.startswith(_NAMED):
        return None
    return task_queue.removeprefix(_NAMED).rpartition("@")[0]


def role_queue(role: Role, archive: str) -> str:
    """The task queue of a role's calls, in the jobs of an archive."""
    return f"{_ROLE}{role}@{archive}"


def role_of(task_queue: str) -> Role | None:
    """The role whose workers make the calls that go by a task queue; None if any may."""
    if task_queue.startswith(_ROLE):
        return Role(limited_by(task_queue))
    if is_tools(task_queue):
        return Role.TOOLS
    return Role.MODELS if task_queue.startswith("model:") else None


def is_of(queue: str, archive: str) -> bool:
    """Whether the calls that go by a queue are of an archive's jobs."""
    return queue.endswith(f"@{archive}")


def is_tools(queue: str) -> bool:
    """Whether it is a tool's queue, and no account's."""
    return queue.startswith("tool:")


def limited_by(queue: str) -> str:
    """The pattern or tool whose queue it is."""
    return queue.partition(":")[2].rpartition("@")[0]


def fairness_key(batch: str) -> str:
    """The key by which a batch's calls are treated as fairly as others'."""
    if len(batch) <= MOST_FAIRNESS_KEY:
        return batch
    # 47 characters, a dash and 16 digits: as many as may be.
    return f"{batch[:47]}-{sha256(batch.encode()).hexdigest()[:16]}"
