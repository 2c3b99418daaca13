"""Whoever works on a batch works on the queues by which its jobs' limited calls go."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.cli.command_line import DEADLINE, ROOT, CommandLine, script

LIMITS = "limits: {models: {'scripted/*': {concurrent: 2}}}"
JOB = "id: a, model: scripted/a.json"

PROGRAM = """
import os, sys
import holdfast
ended = holdfast.run(sys.argv[1]).succeeded
os._exit(0 if ended else 1)
"""

TELL = """
import pathlib, sys
try:
    pathlib.Path("tried").touch(exist_ok=False)
except FileExistsError:
    pathlib.Path("told").write_text(sys.stdin.read())
else:
    sys.exit(1)
"""


def test_a_run_from_python_makes_limited_calls_and_tells_of_its_end(cli: CommandLine) -> None:
    """The job ends, and the batch's end is told, at the second try, before ``holdfast.run``
    returns: this program ends at once.
    """
    cli.write("a.json", script("finish(1)"))
    told = cli.write("tell.py", TELL)
    finish = f"on_finish: {{command: '{sys.executable} {told}', events: [batch]}}"
    file = cli.jobs(JOB, batch="limited-python", head=f"{LIMITS}\n{finish}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        cwd=cli.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    assert '"statuses"' in (cli.path / "told").read_text()
