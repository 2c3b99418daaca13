"""What jobs cost that wait: ``python -m benchmarks.waiting [--jobs N ...] [--seconds S] [--write
FILE]``.

``holdfast run`` follows a batch whose jobs all sleep. When they have slept for a minute, the
processor time is counted that its processes take, and the server. ``--write docs/benchmarks.md``
puts the table there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.batch import Place, made_place
from benchmarks.blocks import hand_over
from runtime.interpreter.processor_time import processor_seconds

BLOCK = "waiting"
JOBS = (1, 50, 200)
SECONDS = 60.0
ASLEEP = 60.0
"""Seconds after which jobs that sleep are asked as seldom as they ever are."""

HEAD = (
    "| jobs that sleep | `holdfast run`, cores | processes of its crew | Temporal |",
    "|--:|--:|--:|--:|",
)


def measure(counts: Sequence[int], seconds: float) -> str:
    """The table."""
    return "\n".join([*HEAD, *(_row(jobs, seconds) for jobs in counts)])


def _row(jobs: int, seconds: float) -> str:
    with made_place() as place:
        _lay_out(place, jobs)
        run = place.start("run", "jobs.yaml")
        while sum(1 for _ in (place.path / "home/archive").glob("b/*/turns/*/*/*.step")) < jobs:
            assert run.poll() is None, (place.path / "run.err").read_text()
            time.sleep(0.5)
        time.sleep(ASLEEP)
        before, began = _used(place), time.monotonic()
        time.sleep(seconds)
        after, took = _used(place), time.monotonic() - began
    cores = {kind: (used - before.get(kind, 0.0)) / took for kind, used in after.items()}
    cells = (
        f"{cores[kind]:.3f}" if kind in cores else "" for kind in ("run", "member", "temporal")
    )
    return f"| {jobs} | {' | '.join(cells)} |"


def _lay_out(place: Place, jobs: int) -> None:
    (place.path / "script.json").write_text(json.dumps([{"code": "wait(86400)"}]))
    job = {"goal": "Wait.", "workspace": ".", "model": "scripted/script.json"}
    batch = [{"id": f"j{n}", **job} for n in range(jobs)]
    (place.path / "jobs.yaml").write_text(
        json.dumps({"batch": "b", "concurrency": jobs, "jobs": batch})
    )


def _used(place: Place) -> dict[str, float]:
    """Seconds of processor time that the processes of each kind have taken."""
    used: dict[str, float] = {}
    for pid, kind in place.processes():
        with suppress(ProcessLookupError):
            used[kind] = used.get(kind, 0.0) + processor_seconds(pid)
    return used


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(measure(given.jobs, given.seconds), BLOCK, given.write)


if __name__ == "__main__":
    main()
