"""Memory of a worker: ``python -m benchmarks.memory [--turns N ...] [--processes N ...]``.

A ``holdfast worker`` waits for its first batch, and then works on it alone: of one process, on a
job of so many turns; of several, on eight jobs of forty. What is in memory of each process is read
when they wait and when the jobs have ended, where it is shared with others in equal parts (``Pss``
of Linux). The jobs are those of ``benchmarks.batch``, through litellm. ``--write
docs/benchmarks.md`` puts the table there.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.batch import Place, made_place
from benchmarks.blocks import hand_over

BLOCK = "memory"
TURNS = (40, 400)
PROCESSES = (2, 4)
JOBS = 8
MOST_SECONDS = 600.0

HEAD = (
    (
        "| `holdfast worker` | each process that works, MB |"
        " what they are forked from, and the one that watches, MB | together, MB |"
    ),
    "|---|--:|--:|--:|",
)


def measure(counts: Sequence[int], sizes: Sequence[int]) -> str:
    """The table."""
    rows = []
    for turns in counts:
        waiting, ended = _worked(1, 1, turns)
        if not rows:
            rows.append(f"| before its first batch | {waiting}")
        rows.append(f"| after a job of {turns} turns | {ended}")
    for size in sizes:
        waiting, ended = _worked(size, JOBS, TURNS[0])
        rows.append(f"| of {size} processes, before their first batch | {waiting}")
        rows.append(f"| of {size} processes, after {JOBS} jobs of {TURNS[0]} turns | {ended}")
    return "\n".join([*HEAD, *rows])


def _worked(processes: int, jobs: int, turns: int) -> tuple[str, str]:
    """The cells of a worker of so many processes: as it waits, and when the jobs have ended."""
    with made_place() as place:
        place.lay_out(jobs, turns)
        place.start("up").wait()
        place.start("worker", "--processes", str(processes))
        said = place.path / "worker.err"
        _until(lambda: "waiting for batches" in said.read_text(), "the worker waits")
        if processes > 1:
            # Not before each has done what it does as it starts.
            locks = place.path / "home" / "workers"
            _until(lambda: len(list(locks.glob("*.lock"))) == processes, "all processes wait")
        waiting = _cells(place)
        run = place.start("run", "jobs.yaml", "--workers", "0")
        archive = place.path / "home" / "archive"
        _until(lambda: any(archive.rglob("*.step")), "the jobs begin")
        # The worker alone goes on with them.
        run.send_signal(signal.SIGINT)
        run.wait()
        _until(lambda: place.ended() == jobs, "the jobs end")
        return waiting, _cells(place)


def _until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.1)


def _cells(place: Place) -> str:
    """What each process that works has in memory, in the middle, what the others have, and all."""
    parts: dict[str, list[float]] = {}
    for pid, kind in place.processes():
        parts.setdefault(kind, []).append(_megabytes(pid))
    alone = "member" not in parts
    working = parts.pop("worker" if alone else "member")
    parts.pop("temporal")
    others = sum(map(sum, parts.values()))
    told = "" if alone else f"{others:.0f}"
    return f"{statistics.median(working):.0f} | {told} | {sum(working) + others:.0f} |"


def _megabytes(pid: int) -> float:
    """What a process has in memory, in MB, and its part of what it has with others."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split()[0]) * 1024 / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    parser.add_argument("--processes", type=int, nargs="*", default=PROCESSES)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(measure(given.turns, given.processes), BLOCK, given.write)


if __name__ == "__main__":
    main()
