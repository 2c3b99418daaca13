"""Runs the quickstart in a state directory of its own and prints what it printed.

``python -m benchmarks.quickstart`` prints it; ``--write README.md`` puts it between the README's
quickstart marks.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.blocks import hand_over

ROOT = Path(__file__).parent.parent
JOBS = "examples/quickstart/jobs.yaml"
BLOCK = "quickstart"
WIDTH = 150


def output(home: Path) -> str:
    """What ``holdfast run`` prints for the quickstart; a failed run raises
    ``CalledProcessError``.
    """
    environment = {**os.environ, "HOLDFAST_HOME": str(home), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "runtime.cli.main", "run", JOBS]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=300
    )
    return ran.stdout


def block(printed: str) -> str:
    """The README's block: progress lines left out but for the ends, long lines cut."""
    lines = [line for line in printed.splitlines() if not re.search(r"  turn \d+  ", line)]
    shown = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    return "\n".join(["```console", f"$ holdfast run {JOBS}", *shown, "```"])


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        text = block(output(Path(home)))
    hand_over(text, BLOCK, arguments.write)


if __name__ == "__main__":
    main()
