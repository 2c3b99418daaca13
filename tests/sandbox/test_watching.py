"""The processes of a command, looked at from outside while they come and go."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime.sandbox.watching import descendants
from tests.sandbox.escapes import running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

_LOOKS = 8_000
"""Some seven of which met a process that had just ended, on the machine that this came from."""


@pytest.mark.slow
def test_a_look_meets_processes_that_end() -> None:
    """Each look is a list, whatever ends between two of its steps."""
    with subprocess.Popen(["sh", "-c", "while :; do (sleep 0.0001 & sleep 0); done"]) as busy:
        # Not the test's own process and all that other tests keep up under it, which stay.
        look = descendants(busy.pid)
        try:
            looks = [look() for _ in range(_LOOKS)]
            found = [running("no process has this as its last word") for _ in range(100)]
        finally:
            busy.kill()

    assert all(pids[0] == busy.pid for pids in looks)
    assert any(len(pids) > 1 for pids in looks)
    assert not any(found)
