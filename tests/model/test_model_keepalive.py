"""A provider that vanishes without a word, as after a lost network, is noticed by TCP itself."""

import asyncio
import sys
from pathlib import Path

import pytest
from model_calls import Job, model_at, openai_server

from tests.eventually import SECONDS

KEEPALIVE_TIMER = "02"
"""In the kernel's table of connections."""


def timers(port: int) -> set[str]:
    """The timers of the connections whose other end is ``port`` of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[5].partition(":")[0] for row in rows if row[2] == f"0100007F:{port:04X}"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's table of connections")
@pytest.mark.usefixtures("litellm")
async def test_a_waiting_connection_is_probed() -> None:
    """While a call waits for its first byte, the kernel asks whether the other end is still
    there.
    """
    async with openai_server(lambda _m, _n: {"hang": True}).serving() as server:
        port = int(server.address.rpartition(":")[2])
        call = asyncio.create_task(Job(model_at(server)).take_turn())
        async with asyncio.timeout(SECONDS):
            while KEEPALIVE_TIMER not in timers(port):
                assert not call.done()
                await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
