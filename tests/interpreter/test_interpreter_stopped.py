"""An interpreter process that is told to stop, as Ctrl-C tells every process of the terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
from pydantic_monty import MontyCrashedError
from runtime.interpreter import pool

def children():
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]

name = sys.argv[1]
# Under nohup, and in a script's background, they would be ignored, also by the interpreter process.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
with pool.session() as session:
    assert session.feed_run("1 + 1") == 2
    threading.Timer(0.1, lambda: [os.kill(pid, getattr(signal, name)) for pid in children()]).start()
    try:
        session.feed_run("n = 0\\nwhile True:\\n    n += 1")
    except MontyCrashedError as crash:
        try:
            pool.raise_if_stopped(crash)
            print("crashed")
        except pool.InterpreterStopped:
            print("stopped")
with pool.session() as session:
    assert session.feed_run("1 + 1") == 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [("SIGINT", "stopped"), ("SIGTERM", "stopped"), ("SIGHUP", "stopped"), ("SIGKILL", "crashed")],
)
def test_a_signal_to_stop_is_no_crash(name: str, told: str) -> None:
    """A statement whose process was told to stop is told apart from one that crashed it; the next
    one runs.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{told}\n", "")
