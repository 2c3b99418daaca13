"""Whether the Temporal server and the namespace are as a worker needs them, and agree about the
time.
"""

from __future__ import annotations

import time
from datetime import timedelta

from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    GetSystemInfoRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.base.errors import InputError, ServerError
from runtime.base.search_attributes import TYPES
from runtime.server.connection import Connection, connect
from runtime.server.preparing import registered_attributes
from runtime.server.server_clock import Clock, server_time
from runtime.server.target import Target
from runtime.worker.doctor.finding import Finding, failed, good, worrying

SKEW_SECONDS = 5.0
"""How far this machine's clock and the server's may be from each other unnoticed."""

MOST_SKEW_SECONDS = 300.0
"""Beyond this, S3 will soon refuse requests (15 minutes), and times in records mislead."""


async def server(target: Target, clock: Clock = time.time) -> list[Finding]:
    """What was found of the server of ``target``."""
    try:
        async with connect(target) as connection:
            return [
                await _version(connection),
                await _namespace(connection.client),
                await _attributes(connection.client),
                await _time(connection.client, clock),
            ]
    except (ServerError, InputError) as error:
        advice = ""
        if "has no namespace" in str(error):
            advice = "'holdfast init' with the same options makes it"
        return [failed("server", str(error), advice)]


async def _version(connection: Connection) -> Finding:
    service = connection.client.workflow_service
    about = await service.get_system_info(GetSystemInfoRequest())
    kind = "embedded, " if connection.embedded is not None else ""
    return good("server", f"{kind}{connection.address}, Temporal {about.server_version}")


async def _namespace(client: Client) -> Finding:
    try:
        about = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError as error:
        return worrying(
            "namespace", f"{client.namespace} may not be described: {error.message}", "none needed"
        )
    days = about.config.workflow_execution_retention_ttl.ToTimedelta() / timedelta(days=1)
    seen = f"{client.namespace}, histories of closed runs are kept {days:g} days"
    if days < 7:
        return worrying(
            "namespace",
            seen,
            "'holdfast init --retention 30d' keeps them longer; 'replay' needs them, 'fork' does"
            " not",
        )
    return good("namespace", seen)


async def _attributes(client: Client) -> Finding:
    try:
        registered = await registered_attributes(client)
    except RPCError as error:
        return worrying(
            "search", f"attributes may not be listed: {error.message}", "ask an administrator"
        )
    missing = [str(name) for name in TYPES if name not in registered]
    if missing:
        return worrying(
            "search",
            f"not registered: {', '.join(missing)}; jobs run, and Temporal's list does not tell",
            "'holdfast init' with the same options adds them",
        )
    return good("search", f"{len(TYPES)} search attributes")


async def _time(client: Client, clock: Clock) -> Finding:
    """Compare clocks, and see that work may be asked for."""
    try:
        before, told, after = await server_time(client, clock)
    except RPCError as error:
        return failed(
            "queues",
            f"work may not be asked for: {error.message}",
            "give this identity the right to poll task queues of the namespace",
        )
    if told is None:
        return worrying("clock", "the server did not say what time it has", "try again")
    # The server's time lies between both looks at ours: only what is outside of them is a
    # difference.
    skew = max(before - told, told - after, 0.0)
    if skew > MOST_SKEW_SECONDS:
        return failed("clock", f"{skew:.0f} s from the server's", "let NTP set it")
    if skew > SKEW_SECONDS:
        return worrying("clock", f"{skew:.0f} s from the server's", "let NTP set it")
    return good("clock", f"agrees with the server's within {SKEW_SECONDS:.0f} s")
