"""Workflow code runs for workflow tasks alone, and never because somebody asks.

A query that has waited for a worker is answered from the history as it is then. Where that has
events after the last task, a worker that does not have the workflow in memory lets its code run on
over them, at the time of that task, keeps it so, and sends the commands with the next one
(temporalio 1.35, ``docs/facts.md``). A replay has them at the time of the next task: whatever was
decided by the time since is decided otherwise, and the history does not replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import SerializationContext, StorageDriverStoreContext
from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.workflow import Info

from runtime.base.workflow_ids import WORKFLOW_TYPES

REFUSED = "asked between two workflow tasks: ask again"
"""What the query is answered with. The worker forgets the workflow then, and replays it for the
next task.
"""


class TaskwiseRunner(UnsandboxedWorkflowRunner):
    """Runs workflow code unsandboxed, for workflow tasks alone.

    Ours is defined as ``sandboxed=False``, so a worker must have it as its
    ``unsandboxed_workflow_runner``: the one for all others is not asked.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """See ``WorkflowRunner``."""
        return _Taskwise(super().create_instance(det))


class OnlyJobsTaskwise(WorkflowRunner):
    """Has jobs and batches run for workflow tasks alone, and workflows of others as ``theirs``
    does.
    """

    def __init__(self, theirs: WorkflowRunner) -> None:
        self._theirs = theirs

    def prepare_workflow(self, defn: Any) -> None:
        """See ``WorkflowRunner``."""
        self._theirs.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """See ``WorkflowRunner``."""
        instance = self._theirs.create_instance(det)
        return _Taskwise(instance) if det.defn.name in WORKFLOW_TYPES else instance

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        """See ``WorkflowRunner``."""
        self._theirs.set_worker_level_failure_exception_types(types)


class _Taskwise(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance
        self._time = self._events = 0

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """See ``WorkflowInstance``."""
        time, events = act.timestamp.ToNanoseconds(), act.history_length
        # Each task that has begun has a time of its own, and the events until then.
        between = time == self._time and events > self._events and not act.is_replaying
        self._time, self._events = time, events
        if between:
            refused = WorkflowActivationCompletion(run_id=act.run_id)
            refused.failed.failure.message = REFUSED
            return refused
        return self._instance.activate(act)

    # What else the SDK asks is the instance's own.

    def get_serialization_context(self, command_info: object) -> SerializationContext | None:
        """See ``WorkflowInstance``."""
        return self._instance.get_serialization_context(command_info)  # type: ignore[arg-type]

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        """See ``WorkflowInstance``."""
        return self._instance.get_external_store_context(command_info)  # type: ignore[arg-type]

    def get_info(self) -> Info:
        """See ``WorkflowInstance``."""
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        """See ``WorkflowInstance``."""
        return self._instance.get_thread_id()
