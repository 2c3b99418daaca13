"""Making a namespace as Holdfast wants it, on any server: what is there already stays as it is.

Temporal Cloud makes namespaces and search attributes by its own API and pages only: there, what the
server refuses is told, and the rest is done.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsRequest,
    DescribeNamespaceRequest,
    RegisterNamespaceRequest,
    UpdateNamespaceRequest,
)
from temporalio.client import Client
from temporalio.service import OperatorService, RPCError, RPCStatusCode

from runtime.base.durations import format_duration
from runtime.base.errors import ServerError
from runtime.base.search_attributes import TYPES
from runtime.base.spec.models import Limit
from runtime.server.rates import Account, account_of, keep_rate

RETENTION = timedelta(days=30)
"""How long a namespace that is made here keeps the history of a closed run: as long as a job can be
taken back on the server; a fork needs the archive alone.
"""

USABLE_SECONDS = 60.0
"""How long a new namespace may take until all of a server knows it; its caches take some 10 s."""

PAUSE_SECONDS = 0.5
"""Between looks whether it does."""

_QUEUE = "holdfast-init"
"""The task queue by which it is found out whether the server keeps limits."""


class Done(StrEnum):
    """What became of one setting."""

    MADE = "made"
    CHANGED = "changed"
    KEPT = "kept"
    REFUSED = "refused"
    ABSENT = "absent"


@dataclass(frozen=True)
class Setting:
    """One setting of a namespace, and what was done about it."""

    name: str
    done: Done
    about: str


async def prepare(client: Client, retention: timedelta | None) -> list[Setting]:
    """Make the client's namespace if there is none, and add the search attributes that it has not.

    ``retention`` is set where it is given; a new namespace gets ``RETENTION`` otherwise.

    Raises:
        ServerError: if there is neither a namespace nor the right to make it, or the server does
            not get to know it.
        RPCError: if the server does not answer.
    """
    made = await _make(client, retention or RETENTION)
    settings = [made] if made is not None else [await _retain(client, retention)]
    return [*settings, *await _once_known(client), await queue_limits(client)]


async def registered_attributes(client: Client) -> dict[str, str]:
    """The namespace's own search attributes, by name: their types, as ``TYPES`` spells them.

    Raises:
        RPCError: if they may not be listed.
    """
    return await attributes_of(client.operator_service, client.namespace)


async def attributes_of(operator: OperatorService, namespace: str) -> dict[str, str]:
    """The same, of any namespace."""
    answer = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
    return {
        name: IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_")
        for name, kind in answer.custom_attributes.items()
    }


async def add_attributes(operator: OperatorService, namespace: str, names: list[str]) -> None:
    """Register search attributes of ``TYPES``.

    Raises:
        RPCError: if this may not be, or there is no room for more.
    """
    kinds = {
        str(name): IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind}")
        for name, kind in TYPES.items()
        if name in names
    }
    await operator.add_search_attributes(
        AddSearchAttributesRequest(namespace=namespace, search_attributes=kinds)
    )


async def _make(client: Client, retention: timedelta) -> Setting | None:
    """Make the namespace; None if there is one.

    It is not asked for first: the server would remember the "no".
    """
    kept = Duration(seconds=int(retention.total_seconds()))
    try:
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(
                namespace=client.namespace, workflow_execution_retention_period=kept
            )
        )
    except RPCError as error:
        if error.status == RPCStatusCode.ALREADY_EXISTS:
            return None
        if error.status in {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED}:
            await _must_be_there(client, error)
            return None
        raise
    about = f"histories of closed runs are kept {_shown(retention)}"
    return Setting(f"namespace {client.namespace}", Done.MADE, about)


async def _must_be_there(client: Client, refusal: RPCError) -> None:
    """See that there is one nevertheless: Temporal Cloud refuses to make what there is, too.

    Raises:
        ServerError: if there is none.
    """
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError as error:
        raise ServerError(
            f"there is no namespace {client.namespace!r}, and this identity may not make it"
            f" ({refusal.message or refusal.status.name}): let an administrator do so (on Temporal"
            " Cloud: its page, or 'tcld namespace create')"
        ) from error


async def _retain(client: Client, retention: timedelta | None) -> Setting:
    name = f"namespace {client.namespace}"
    about = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace)
    )
    current = about.config.workflow_execution_retention_ttl.ToTimedelta()
    if retention is None or retention == current:
        return Setting(name, Done.KEPT, f"histories of closed runs are kept {_shown(current)}")
    kept = Duration(seconds=int(retention.total_seconds()))
    try:
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace,
                config=NamespaceConfig(workflow_execution_retention_ttl=kept),
            )
        )
    except RPCError as error:
        if not _may_not(error):
            raise
        told = f"histories of closed runs are kept {_shown(current)}: {error.message}"
        return Setting(name, Done.REFUSED, told)
    return Setting(
        name,
        Done.CHANGED,
        f"histories of closed runs are kept {_shown(retention)}, and were {_shown(current)}",
    )


async def _add_attributes(client: Client) -> list[Setting]:
    operator = client.operator_service
    try:
        registered = await attributes_of(operator, client.namespace)
        missing = [str(name) for name in TYPES if name not in registered]
        if missing:
            await add_attributes(operator, client.namespace, missing)
    except RPCError as error:
        if not _may_not(error):
            raise
        return [Setting("search attributes", Done.REFUSED, error.message or error.status.name)]
    return [
        _attribute(str(name), kind, registered.get(str(name), "")) for name, kind in TYPES.items()
    ]


async def queue_limits(client: Client) -> Setting:
    """Whether the server keeps rates of task queues: asked by one that nobody works on, which then
    has none. A server that does not is no error, since most batches have no limits.
    """
    name = "queue limits"
    try:
        await keep_rate(client, _QUEUE, Account(limit=Limit(requests_per_minute=60)), now=0)
        _, rate = await account_of(client, _QUEUE)
        await keep_rate(client, _QUEUE, Account(), now=0)
    except RPCError as error:
        if not _may_not(error):
            raise
        told = f"'limits:' of jobs files do not hold here: {error.message or error.status.name}"
        return Setting(name, Done.ABSENT, told)
    if rate != 1:
        return Setting(name, Done.ABSENT, "'limits:' of jobs files do not hold: no rate is kept")
    return Setting(name, Done.KEPT, "the server keeps the rates of jobs files' 'limits:'")


def _attribute(name: str, kind: str, present: str) -> Setting:
    about = f"search attribute {name}"
    if not present:
        return Setting(about, Done.MADE, kind.capitalize())
    if present == kind:
        return Setting(about, Done.KEPT, kind.capitalize())
    told = (
        f"it is of type {present.capitalize()}, and should be {kind.capitalize()}: remove it first"
    )
    return Setting(about, Done.REFUSED, told)


async def _once_known(client: Client) -> list[Setting]:
    """Add the search attributes, as soon as the server knows the namespace.

    One that was asked for it before it was made remembers the "no" for some seconds.

    Raises:
        ServerError: if that does not pass.
    """
    count = CountWorkflowExecutionsRequest(namespace=client.namespace)
    try:
        async with asyncio.timeout(USABLE_SECONDS):
            while True:
                try:
                    settings = await _add_attributes(client)
                    await client.workflow_service.count_workflow_executions(count)
                    return settings
                except RPCError as error:
                    if error.status != RPCStatusCode.NOT_FOUND:
                        raise
                await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError as error:
        raise ServerError(
            f"the namespace {client.namespace!r} is made, and the server does not know it after"
            f" {USABLE_SECONDS:.0f} s: give the same command again"
        ) from error


def _may_not(error: RPCError) -> bool:
    return error.status in {
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNIMPLEMENTED,
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.RESOURCE_EXHAUSTED,
    }


def _shown(duration: timedelta) -> str:
    return str(format_duration(duration.total_seconds()))
