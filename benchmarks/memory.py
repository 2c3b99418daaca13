"""Memory of a worker: ``python -m benchmarks.memory [--turns N ...] [--write FILE]``.

A ``holdfast worker`` of one process waits for its first batch, and then works on one job after the
other, of so many turns each; what is in memory of it is read each time. The jobs are those of
``benchmarks.batch``, through litellm. ``--write docs/benchmarks.md`` puts the table there.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.batch import Place, made_place, resident
from benchmarks.blocks import hand_over

BLOCK = "memory"
TURNS = (40, 400)
MOST_SECONDS = 600.0

HEAD = ("| `holdfast worker` | in memory, MB |", "|---|--:|")


def measure(counts: Sequence[int]) -> str:
    """The table."""
    rows = []
    for turns in counts:
        with made_place() as place:
            place.lay_out(1, turns)
            place.start("up").wait()
            place.start("worker", "--processes", "1")
            said = place.path / "worker.err"
            _until(lambda said=said: "waiting for batches" in said.read_text(), "the worker waits")
            if not rows:
                rows.append(f"| before its first batch | {_megabytes(place):.0f} |")
            run = place.start("run", "jobs.yaml")
            archive = place.path / "home" / "archive"
            _until(lambda archive=archive: any(archive.rglob("*.step")), "the job begins")
            # The worker alone goes on with it.
            run.send_signal(signal.SIGINT)
            run.wait()
            _until(lambda place=place: place.ended() == 1, "the job ends")
            rows.append(f"| after a job of {turns} turns | {_megabytes(place):.0f} |")
    return "\n".join([*HEAD, *rows])


def _until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.1)


def _megabytes(place: Place) -> float:
    """What the worker's process has in memory, in MB."""
    (worker,) = (pid for pid, kind in place.processes() if kind == "worker")
    return resident(worker) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(measure(given.turns), BLOCK, given.write)


if __name__ == "__main__":
    main()
