"""What is kept of a job, in bytes: ``python -m benchmarks.stored [--turns N ...] [--write FILE]``.

The jobs are those of ``benchmarks.turn``: W1 has a prompt that begins with 10 kB, and each of its
statements prints 1.2 kB of random letters; W2 has 60 kB and 5 kB. Counted are the events of all
histories, as the server hands them out, and the files of the archive, each with all its bytes; not
the blocks of a disk. ``--write docs/benchmarks.md`` puts the table there.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from temporalio.client import Client

from benchmarks.blocks import hand_over
from benchmarks.leaving import leave
from benchmarks.turn_worker import WHOLE, Load, Measurement, one_job
from tests.servers.temporal_server import temporal_server

BLOCK = "stored"
TURNS = (50, 100, 200)
LOADS = {"W1": Load(), "W2": Load(prompt=60_000, printed=5_000)}

HEAD = (
    "| load | turns | history, kB | archive, kB | both, MB | a turn, kB | grows as turns to the |",
    "|---|--:|--:|--:|--:|--:|--:|",
)


async def history_bytes(client: Client, workflow: str) -> int:
    """Of all events of all runs of a workflow."""
    run = (await client.get_workflow_handle(workflow).describe()).run_id
    total = 0
    while run:
        history = await client.get_workflow_handle(workflow, run_id=run).fetch_history()
        total += sum(event.ByteSize() for event in history.events)
        begun = history.events[0].workflow_execution_started_event_attributes
        run = begun.continued_execution_run_id
    return total


async def measure(counts: Sequence[int]) -> str:
    """The table."""
    rows: list[str] = []
    async with temporal_server() as environment:
        address = environment.client.service_client.config.target_host
        for name, load in LOADS.items():
            before: tuple[int, int] | None = None
            for turns in counts:
                history, archive = await _kept(address, turns, load)
                rows.append(_row(name, turns, history, archive, before))
                before = turns, history + archive
    return "\n".join([*HEAD, *rows])


async def _kept(address: str, turns: int, load: Load) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        given = Measurement(
            address=address, folder=Path(folder), kind=WHOLE, jobs=1, turns=turns, load=load
        )
        async with one_job(given, f"stored-{uuid.uuid4().hex}") as (client, workflow):
            history = await history_bytes(client, workflow)
        files = (path for path in (Path(folder) / "archive").rglob("*") if path.is_file())
        return history, sum(path.stat().st_size for path in files)


def _row(name: str, turns: int, history: int, archive: int, before: tuple[int, int] | None) -> str:
    both = history + archive
    power = f"{math.log(both / before[1]) / math.log(turns / before[0]):.2f}" if before else ""
    cells = (
        name,
        turns,
        f"{history / 1000:.0f}",
        f"{archive / 1000:.0f}",
        f"{both / 1e6:.2f}",
        f"{both / 1000 / turns:.2f}",
        power,
    )
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    hand_over(asyncio.run(measure(given.turns)), BLOCK, given.write)


if __name__ == "__main__":
    main()
    leave()
