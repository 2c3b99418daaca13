"""A command that cannot be started leaves nothing behind: a host in trouble is asked again and
again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox

TRIES = """
import json, os, resource, sys, threading
from pathlib import Path
from runtime.base.errors import HoldfastError
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Command, Place

top = Path(sys.argv[2])
sandbox = sandbox_of(sys.argv[1])
command, place = Command("true"), Place(directory=top)
files = top / "stdout", top / "stderr"

def run():
    return sandbox.run(command, place, *files, on_beat=print, stop=threading.Event()).exit_code

def opened():
    return len(os.listdir("/proc/self/fd"))

def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

# What is opened once, for all commands of a process.
run()
before = opened()
refused, left = 0, []
for more in range(2, 60):
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + more, 4096))
    try:
        code = run()
    except (OSError, HoldfastError):
        code = None
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    if opened() != before or children():
        left.append([more, opened() - before, children()])
    if code == 0 or left:
        break
    refused += 1
print(json.dumps([refused, left]))
"""
"""Runs a command with ever more descriptors that this process may have, until they are enough."""


@pytest.mark.parametrize("kind", ["bwrap", "none"])
def test_no_descriptor_is_left_of_one_that_is_refused(kind: str, tmp_path: Path) -> None:
    """However far the start of a command came before it was refused a further descriptor, none of
    its own stays open, and none of its processes lives.
    """
    told = subprocess.run(
        [sys.executable, "-c", TRIES, kind, str(tmp_path)], check=True, capture_output=True
    )
    refused, left = json.loads(told.stdout)
    assert refused > 5
    assert left == []
