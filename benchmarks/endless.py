"""A job of 5,000 turns in many runs, killed at 50 seeded moments: ``python -m benchmarks.endless
[--turns N] [--kills N]``.

The job is taken twice, undisturbed and killed, side by side, with real processes: ``holdfast run``,
a Temporal server, an HTTP model. Both must be the same to the last step, in however many runs. A
history may have 51,200 events and 50 MB. The memory is that of the worker that nobody killed, with
its interpreter processes. ``--write docs/benchmarks.md`` puts the tables there. At full size it
takes half an hour and more: a worker that dies within a workflow task costs the minute that a task
may take.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.blocks import hand_over
from tests.kill import experiments, strikes
from tests.kill.experiments import Survived
from tests.kill.oracle import differences
from tests.kill.processes import resident_bytes
from tests.kill.scene import Plot, Scene

BLOCK = "endless"
TURNS, KILLS, SEED = 5_000, 50, 2026
MOST_EVENTS, MOST_BYTES = 51_200 / 3, 50e6 / 3
"""A third of what Temporal lets a history have."""

HEAD = (
    (
        "| job | kills | of them between two runs | turns | runs | requests | of them for finished"
        " turns after a kill | longest history, of a third of the limit | largest history, of a"
        " third of the limit | differences |"
    ),
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
)


def row(name: str, made: Survived, undisturbed: Survived) -> str:
    """A job's row."""
    events = max(history.events for history in made.histories)
    size = max(history.bytes for history in made.histories)
    cells = (
        name,
        made.kills,
        made.between_runs,
        f"{len(made.attempts):,}",
        len(made.histories),
        f"{sum(made.calls.values()):,}",
        made.called_again,
        f"{events:,} events, {events / MOST_EVENTS:.0%}",
        f"{size / 1e6:.1f} MB, {size / MOST_BYTES:.0%}",
        len(differences(made.record, undisturbed.record)),
    )
    return f"| {' | '.join(map(str, cells))} |"


def memory_rows(memory: dict[int, int]) -> list[str]:
    """The worker's memory, by turn."""
    sizes = [f"{size / 1e6:.0f}" for size in memory.values()]
    turns = " | ".join(f"{turn:,}" for turn in memory)
    return [
        f"| turn | {turns} |",
        "|---" + "|--:" * len(memory) + "|",
        f"| memory in MB | {' | '.join(sizes)} |",
    ]


class Memory:
    """The resident memory of a job's worker, looked at after every tenth of its turns."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.bytes: dict[int, int] = {}

    def watch(self, scene: Scene) -> None:
        """Look until the last turn has come."""
        assert scene.process is not None
        for turn in range(self.turns // 10, self.turns, self.turns // 10):
            reached = strikes.Strike(turn, strikes.Mark.STEP, 0, strikes.Victim.WORKER)
            reached.await_moment(scene)
            self.bytes[turn] = resident_bytes(scene.process.pid)


def measure(path: Path, turns: int, kills: int) -> str:
    """Take both jobs; the two tables."""
    plot = Plot(turns, context_tokens=8_000)
    memory = Memory(turns)
    # Strikes come a little closer than that, so that all have come before the last turn.
    gap = turns / kills
    planned = strikes.later_strikes(
        SEED, kills, max(1, kills // 10), (round(gap * 0.3), round(gap * 0.8))
    )
    with ThreadPoolExecutor(2) as pool:
        alone = pool.submit(experiments.undisturbed, path / "alone", plot, memory.watch)
        killed = pool.submit(experiments.struck, path / "killed", planned, plot)
        undisturbed, survived = alone.result(), killed.result()
    for difference in differences(survived.record, undisturbed.record)[:20]:
        print(difference[:400])
    rows = [row("undisturbed", undisturbed, undisturbed), row("killed", survived, undisturbed)]
    return "\n".join([*HEAD, *rows, "", *memory_rows(memory.bytes)])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        text = measure(Path(folder), given.turns, given.kills)
    hand_over(text, BLOCK, given.write)


if __name__ == "__main__":
    main()
