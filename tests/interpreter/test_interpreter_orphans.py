"""Interpreter processes whose worker was killed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from runtime.interpreter import pool
from runtime.interpreter.processor_time import watchdog
from tests.eventually import SECONDS, alive
from tests.kill.processes import ROOT, wait_for

KILLED_IN_MID_STATEMENT = """
import os, signal, threading, time
from runtime.interpreter import pool, processor_time

def kill(pid, computed):
    while processor_time.processor_seconds(pid) < computed + 0.1:
        time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)

processor_time.ORPHAN_SECONDS = 1.0
with pool.session() as session, processor_time.watchdog.limiting(pool.pid_of(session), 1.0):
    pid = pool.pid_of(session)
    print(pid, flush=True)
    threading.Thread(target=kill, args=(pid, processor_time.processor_seconds(pid))).start()
    session.feed_run("while True: pass")
"""
"""The worker goes when its interpreter has computed something, and leaves it stopped: it comes no
nearer to its bound until somebody lets it go on.
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_a_statement_without_an_end_does_not_outlive_its_worker_for_long() -> None:
    """Nobody looks how long it computes any more: the kernel does."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_IN_MID_STATEMENT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        # Which the interpreter has, too.
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    pid = int(killed.stdout)
    assert killed.returncode == -signal.SIGKILL
    try:
        assert alive(pid)
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not alive(pid), "the interpreter's process ends", seconds=SECONDS)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_the_bound_is_lifted_behind_what_it_was_for() -> None:
    """The process serves other statements, each with a bound of its own."""
    with pool.session() as session:
        pid = pool.pid_of(session)
        before = resource.prlimit(pid, resource.RLIMIT_CPU)
        with watchdog.limiting(pid, 1.0) as limit:
            soft, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
            assert (limit.end < soft <= limit.end + 60, hard) == (True, before[1])
        assert resource.prlimit(pid, resource.RLIMIT_CPU) == before
