"""How long a user waits: ``python -m benchmarks.commands [--times N] [--write FILE]``.

Each command is a process of its own, as a shell starts it, and is given so many times; the table
has the median and the worst. The model is a script that answers at once. The first run of all is
not counted: Python compiles what it has not loaded yet. ``--write docs/benchmarks.md`` puts the
table there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.blocks import hand_over

BLOCK = "commands"
TIMES = 7

HEAD = ("| command | seconds, median | worst |", "|---|--:|--:|")


class Shell:
    """A state directory of its own, and the program as a user starts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batches = 0
        self.batch = ""
        (folder / "script.json").write_text(json.dumps([{"code": "finish('done')"}]))

    def give(self, *words: str) -> float:
        """Give a command, and say how many seconds it took.

        Raises:
            CalledProcessError: if it fails.
        """
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            cwd=self._folder,
            env={**os.environ, "HOLDFAST_HOME": str(self._folder / "home"), "NO_COLOR": "1"},
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )
        return time.perf_counter() - began

    def run_anew(self) -> float:
        """Run a batch of one job of one turn that nobody has run."""
        self._batches += 1
        self.batch = f"b{self._batches}"
        job = {"id": "a", "goal": "Say done.", "workspace": ".", "model": "scripted/script.json"}
        (self._folder / "jobs.yaml").write_text(json.dumps({"batch": self.batch, "jobs": [job]}))
        return self.run()

    def run(self) -> float:
        """Give the last batch (again)."""
        return self.give("run", "jobs.yaml")


def measure(times: int) -> str:
    """The table."""
    rows: list[str] = []

    def row(name: str, give: Callable[[], float]) -> None:
        taken = [give() for _ in range(times)]
        rows.append(f"| {name} | {statistics.median(taken):.2f} | {max(taken):.2f} |")

    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        shell.run_anew()
        row("`run` of one turn, which starts the server and stops it", shell.run_anew)
        shell.give("up")
        try:
            row("`run` of one turn, the server is up", shell.run_anew)
            row("`run` with nothing to do, the server is up", shell.run)
        finally:
            shell.give("down")
        job = f"{shell.batch}/a"
        for words in (("ls",), ("log", job), ("show", f"{job}@1")):
            row(f"`{words[0]}`, no server", lambda words=words: shell.give(*words))
    return "\n".join([*HEAD, *rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(measure(given.times), BLOCK, given.write)


if __name__ == "__main__":
    main()
