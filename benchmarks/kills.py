"""A thousand kills in one run of the harness: ``python -m benchmarks.kills [--kills N] [--jobs
N]``.

Several jobs are struck side by side at seeded moments, each with a state directory, a server and a
worker of its own, and compared to the last step with one that nobody touched. Nine strikes of ten
hit the worker while it calls the model; the tenth hits the worker, the server or both anywhere,
workflow tasks and the ends of runs included. Workers are forked from a process that has loaded the
libraries. ``--write FILE`` puts the table between the marks of its name.
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
from tests.kill.scene import Plot

BLOCK = "kills"
KILLS, JOBS, SEED = 1_000, 10, 1_000
ANYWHERE = 10
"""One strike of so many hits anywhere."""

HEAD = (
    (
        "| job | kills | of them between two runs | turns | runs | requests"
        " | of them for finished turns after a kill | differences from the undisturbed job |"
    ),
    "|---|--:|--:|--:|--:|--:|--:|--:|",
)


def cells(name: str, made: Survived, differing: int) -> tuple[str, ...]:
    """A job's row."""
    numbers = (
        made.kills,
        made.between_runs,
        len(made.attempts),
        len(made.histories),
        made.calls.total(),
        made.called_again,
        differing,
    )
    return (name, *(f"{number:,}" for number in numbers))


def measure(path: Path, kills: int, jobs: int) -> str:
    """Strike the jobs; the table."""
    each = kills // jobs
    plot = Plot(each * 2 + 40, context_tokens=8_000, run_events=400)
    with ThreadPoolExecutor(jobs + 1) as pool:
        alone = pool.submit(experiments.undisturbed, path / "alone", plot)
        struck = [
            pool.submit(
                experiments.struck,
                path / f"struck-{number}",
                strikes.many_strikes(SEED + number, each, ANYWHERE),
                plot,
            )
            for number in range(1, jobs + 1)
        ]
        undisturbed, survived = alone.result(), [future.result() for future in struck]
    rows = [cells("undisturbed", undisturbed, 0)]
    for number, made in enumerate(survived, 1):
        found = differences(made.record, undisturbed.record)
        for difference in found[:5]:
            print(difference[:400])
        rows.append(cells(f"struck {number}", made, len(found)))
    columns = list(zip(*(row[1:] for row in rows[1:]), strict=True))
    totals = (f"{sum(int(cell.replace(',', '')) for cell in column):,}" for column in columns)
    rows.append(("all that were struck", *totals))
    return "\n".join([*HEAD, *(f"| {' | '.join(row)} |" for row in rows)])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        text = measure(Path(folder), given.kills, given.jobs)
    hand_over(text, BLOCK, given.write)


if __name__ == "__main__":
    main()
