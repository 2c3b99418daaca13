"""A command ends with the worker that runs it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.sandbox.escapes import running

_ROOT = Path(__file__).resolve().parents[2]
_MARK = "holdfast-test-command"

_WORKER = """
import sys, threading
from pathlib import Path
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Command, Limits, Place
kind, top, shell = sys.argv[1:]
top = Path(top)
run = lambda: sandbox_of(kind).run(
    Command(shell, limits=Limits(seconds=600)), Place(directory=top / "workspace"),
    top / "stdout", top / "stderr", on_beat=lambda _: None, stop=threading.Event(),
)
# As activities do: in a thread that is not the first one.
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def _started(program: str, kind: str, top: Path, shell: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, kind, top, shell], cwd=_ROOT, env={**os.environ, **env}
    )


@pytest.mark.kill
@pytest.mark.parametrize("kind", ["bwrap", "none"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda how: how.name)
async def test_a_killed_worker_leaves_no_process_of_its_command(
    kind: str, how: signal.Signals, tmp_path: Path
) -> None:
    """Those in other sessions and process groups included, deaf to signals."""
    mark = f"{_MARK}-{tmp_path.name}"
    (tmp_path / "workspace").mkdir()
    shell = (
        "trap '' TERM HUP INT\n"
        "loop='trap \"\" TERM HUP INT; while :; do sleep 0.2; done'\n"
        f'setsid sh -c "$loop" {mark} & (setsid nohup sh -c "$loop" {mark} >/dev/null 2>&1 &) &\n'
        f'sh -c "$loop" {mark}\n'
    )
    worker = _started(_WORKER, kind, tmp_path, shell)
    try:
        await eventually(lambda: len(running(mark)) == 3, "the command's processes run", 60)
    finally:
        worker.send_signal(how)
        worker.wait()

    await eventually(lambda: not running(mark), "the command's processes are gone", 60)


@pytest.mark.kill
@pytest.mark.parametrize("kind", ["bwrap", "none"])
async def test_a_worker_killed_while_it_starts_a_command_runs_none_without_it(
    kind: str, tmp_path: Path
) -> None:
    """Killed at many moments of the start: what began ends, and what had not begun never does."""
    (tmp_path / "workspace").mkdir()
    mark = f"{_MARK}-{tmp_path.name}"
    program = (
        _WORKER.replace("import sys, threading", "import os, sys, threading, time, signal")
        # A moment that is counted, not waited for: the n-th system call wrapper that run() uses.
        .replace(
            "run = lambda",
            "left = int(os.environ['MOMENT'])\n"
            "def dying(name):\n"
            "    real = getattr(os, name)\n"
            "    def call(*args, **kwargs):\n"
            "        global left\n"
            "        left -= 1\n"
            "        if left == 0:\n"
            "            os.kill(os.getpid(), signal.SIGKILL)\n"
            "        return real(*args, **kwargs)\n"
            "    setattr(os, name, call)\n"
            "sandbox_of(kind)\n"
            "for name in ('read', 'write', 'close', 'pipe', 'set_blocking', 'pidfd_open'):\n"
            "    if hasattr(os, name): dying(name)\n"
            "run = lambda",
        )
    )
    shell = f"sh -c 'while :; do sleep 0.2; done' {mark}"
    for moment in range(1, 40, 3):
        worker = _started(program, kind, tmp_path, shell, MOMENT=str(moment))
        assert worker.wait(60) == -signal.SIGKILL
        await eventually(lambda: not running(mark), f"nothing runs after moment {moment}", 60)
