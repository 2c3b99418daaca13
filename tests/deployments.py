"""Versions of workers, as an operator deploys them."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode

from tests.eventually import eventually

_NOT_THERE = frozenset((RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION))
"""No worker of the version has come yet."""


async def make_current(client: Client, version: WorkerDeploymentVersion) -> None:
    """Have Temporal give new runs to a version once a worker of it has come, as ``temporal worker
    deployment set-current-version`` does.
    """
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=version.deployment_name,
        build_id=version.build_id,
        ignore_missing_task_queues=True,
    )

    async def is_made() -> bool:
        try:
            await client.workflow_service.set_worker_deployment_current_version(request, retry=True)
        except RPCError as error:
            if error.status not in _NOT_THERE:
                raise
            return False
        return True

    await eventually(is_made, f"a worker of version {version.build_id} has come")
