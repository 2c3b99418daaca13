"""What a turn costs, beside the floor in the same run: ``python -m benchmarks.turn [--turns N]
[--long N] [--jobs N ...] [--processes N ...] [--write FILE]``.

The floor is a workflow with one bare activity a turn. A job has a system prompt of 10 kB, and each
of its statements prints 1.2 kB of random text; its model is a script that answers at once, through
litellm or through a stand-in for it. Processor time is that of the workers' processes, which have
little else to do; turns a second depend on what else the machine does. ``--write
docs/benchmarks.md`` puts the tables there.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.blocks import hand_over
from benchmarks.leaving import leave
from benchmarks.peer import is_there
from benchmarks.turn_worker import FLOOR, PEER, STAND_IN, WHOLE, Figures, Measurement
from tests.servers.temporal_server import temporal_server

BLOCK = "turn"
TURNS, LONG, JOBS, PROCESSES = 120, 1_020, (1, 10), (1,)
WINDOW = 20
"""Turns over which the processor time of one is averaged."""

PLACES = (10, 100, 200, 300, 500, 700, 990, 1_500, 1_975)
LEAST_PART = 0.1
"""Milliseconds a turn below which a part is not told by itself."""

KINDS = {FLOOR: "the floor", WHOLE: "a job", STAND_IN: "with a stand-in", PEER: "pydantic-ai"}
HEAD = (
    (
        "| jobs | processes | what | turns a second | of the floor | workers, ms of processor time"
        " a turn | their interpreters, ms |"
    ),
    "|--:|--:|---|--:|--:|--:|--:|",
)


async def measured(given: Measurement) -> Figures:
    """The figures of a process of its own.

    Raises:
        RuntimeError: if it fails.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.turn_worker",
        given.model_dump_json(),
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the measurement ended with code {process.returncode}: {given}")
    # The last line: the SDK's core writes its warnings before it.
    return Figures.model_validate_json(out.splitlines()[-1])


async def measure(turns: int, long: int, jobs: Sequence[int], processes: Sequence[int]) -> str:
    """All tables."""
    async with temporal_server() as environment:
        address = environment.client.service_client.config.target_host

        async def of(
            kind: str, jobs: int, turns: int, processes: int = 1, *, profiled: bool = False
        ) -> Figures:
            with tempfile.TemporaryDirectory() as folder:
                return await measured(
                    Measurement(
                        address=address,
                        folder=Path(folder),
                        kind=kind,
                        jobs=jobs,
                        turns=turns,
                        processes=processes,
                        profiled=profiled,
                    )
                )

        rows: list[str] = []
        for number, size in itertools.product(jobs, processes):
            each = max(turns // number, 3 * WINDOW // 2)
            floor = await of(FLOOR, number, each, size)
            for kind, name in KINDS.items():
                if kind == PEER and not is_there():
                    continue
                figures = floor if kind == FLOOR else await of(kind, number, each, size)
                rows.append(_row(number, size, name, figures, floor))
        # In a run of its own: the profiler makes every call dearer, so shares alone are taken from
        # it.
        parts = _parts(await of(WHOLE, 1, turns, profiled=True), await of(WHOLE, 1, turns))
        growth = _growth((await of(WHOLE, 1, long)).marks)
    return "\n".join([*HEAD, *rows, "", *parts, "", *growth])


def _row(jobs: int, processes: int, name: str, figures: Figures, floor: Figures) -> str:
    rate, most = figures.turns / figures.seconds, floor.turns / floor.seconds
    cells = (
        jobs,
        processes,
        name,
        f"{rate:.1f}",
        f"{rate / most:.2f}",
        f"{figures.host / figures.turns * 1000:.1f}",
        f"{figures.children / figures.turns * 1000:.1f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def _parts(figures: Figures, plain: Figures) -> list[str]:
    """The parts' shares of what a turn took without the profiler."""
    whole = plain.host / plain.turns * 1000
    profiled = sum(figures.parts.values())
    each = {name: seconds / profiled * whole for name, seconds in figures.parts.items()}
    told = {name: ms for name, ms in each.items() if ms >= LEAST_PART}
    lines = [f"| {name} | {ms:.1f} |" for name, ms in sorted(told.items(), key=lambda x: -x[1])]
    return ["| part of the worker's process, one job | ms a turn |", "|---|--:|", *lines]


def _growth(marks: Sequence[float]) -> list[str]:
    places = [place for place in PLACES if place + WINDOW < len(marks)]
    each = [(marks[place + WINDOW] - marks[place]) / WINDOW * 1000 for place in places]
    return [
        f"| turn | {' | '.join(map(str, places))} |",
        "|---" + "|--:" * len(places) + "|",
        f"| worker, ms of processor time | {' | '.join(f'{ms:.1f}' for ms in each)} |",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--long", type=int, default=LONG)
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS)
    parser.add_argument("--processes", type=int, nargs="+", default=PROCESSES)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    text = asyncio.run(measure(given.turns, given.long, given.jobs, given.processes))
    hand_over(text, BLOCK, given.write)


if __name__ == "__main__":
    main()
    leave()
