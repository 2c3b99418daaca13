"""What several of these tests do with a server."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus

from runtime.base.home import Home
from runtime.server.embedded import NAMESPACE, ServerInfo
from runtime.server.process import is_alive, read_info, wait_until


async def client_of(server: ServerInfo) -> Client:
    return await Client.connect(server.address, namespace=NAMESPACE)


async def start_job(client: Client, name: str) -> None:
    """Starts a workflow that no worker will ever take: it is there until it is terminated."""
    await client.start_workflow("Nobody", id=name, task_queue="nobody")


async def is_running(client: Client, name: str) -> bool:
    return (
        await client.get_workflow_handle(name).describe()
    ).status == WorkflowExecutionStatus.RUNNING


async def kill(home: Home, server: ServerInfo) -> None:
    os.kill(server.pid, signal.SIGKILL)
    assert await wait_until(lambda: not is_alive(home), 100)


def kill_at_once(home: Home) -> int:
    """Kills the server of a home, whichever it is, waits until it is gone, and says which process
    it was.
    """
    info = read_info(home)
    assert info is not None
    with contextlib.suppress(ProcessLookupError):
        os.kill(info.pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while is_alive(home):
        assert time.monotonic() < end, "the server does not end"
        time.sleep(0.02)
    return info.pid


def python(code: str, home: Home) -> "subprocess.Popen[str]":
    """Another process that runs ``code``, in the repository and with the same state directory."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HOLDFAST_HOME": str(home.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
