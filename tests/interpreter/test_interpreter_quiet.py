"""What the interpreter's processes have to say when they hit a limit or are killed is for the
program, not for its terminal.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
from pydantic_monty import MontyError
from runtime.interpreter import checker, pool, typecheck

def children():
    pid = os.getpid()
    return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]

def killed(name, args, kwargs):
    for child in children():
        os.kill(child, signal.SIGKILL)

kind = sys.argv[1]
try:
    if kind == "check":
        typecheck.check("x: int = 'a'", "", {}, frozenset())
        for child in children():
            os.kill(child, signal.SIGKILL)
        typecheck.check("x: int = 1", "", {}, frozenset())
    with pool.session() as session:
        if kind == "killed":
            snapshot = session.feed_start("f()")
            killed(None, None, None)
            snapshot.resume({"return_value": 1})
        elif kind == "abandoned":
            session.feed_start("f()")
        else:
            session.feed_run({"time": "while True: pass", "memory": "x = [0] * 10**9",
                              "recursion": "def f(n): return f(n + 1)\\nf(0)"}.get(kind, "1"))
except (MontyError, RuntimeError, checker.GaveUp) as error:
    print(type(error).__name__)
pool.close()
checker.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["time", "memory", "recursion", "killed", "abandoned", "check"],
)
def test_nothing_reaches_the_terminal(kind: str) -> None:
    """Standard error stays empty, whatever becomes of the process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
