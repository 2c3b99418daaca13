"""The workflows as versioned workers register them: Temporal takes a versioning behaviour from such
workers alone.

A job is pinned to the release that it began on until it continues as new; a batch, which outlives
releases, goes with the current one, and so do the jobs that it starts.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import VersioningBehavior

with workflow.unsafe.imports_passed_through():
    from workflows.batch import BatchWorkflow
    from workflows.job import JobWorkflow
    from workflows.messages import BatchOrder, BatchState, JobOrder, JobOutcome


@workflow.defn(name="JobWorkflow", sandboxed=False, versioning_behavior=VersioningBehavior.PINNED)
class VersionedJob(JobWorkflow):
    """``JobWorkflow``, pinned."""

    @workflow.run
    async def run(self, order: JobOrder) -> JobOutcome:
        """As ``JobWorkflow.run``."""
        return await super().run(order)


@workflow.defn(
    name="BatchWorkflow", sandboxed=False, versioning_behavior=VersioningBehavior.AUTO_UPGRADE
)
class VersionedBatch(BatchWorkflow):
    """``BatchWorkflow``, always on the current version."""

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchState:
        """As ``BatchWorkflow.run``."""
        return await super().run(order)
