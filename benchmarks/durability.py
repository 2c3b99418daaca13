"""What kills a job survives, and what a turn costs Temporal's history and the archive: the tables
of docs/benchmarks.md.

``python -m benchmarks.durability`` makes every experiment of ``tests/kill`` and weighs the history
of a 200-turn job, and prints two tables; ``--write docs/benchmarks.md`` puts them between its
durability marks. It takes some minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.blocks import hand_over
from benchmarks.history_size import HistorySize, measured_alone
from tests.kill import experiments, strikes
from tests.kill.experiments import Survived
from tests.kill.failpoints import CHECKPOINTS, CONDENSATION, GROUPS
from tests.kill.oracle import differences

BLOCK = "durability"

HEAD = (
    (
        "| experiment | what is killed | kills | turns | calls of finished turns after a kill |"
        " differences from an undisturbed job |"
    ),
    "|---|---|--:|--:|--:|--:|",
)


def kill_row(name: str, outcome: Survived, undisturbed: Survived) -> str:
    """The row of one experiment."""
    different = len(differences(outcome.record, undisturbed.record))
    kind, _, what = name.partition("/")
    told = {
        "failpoints": _group,
        "checkpoint": _checkpoint,
        "struck": _victims,
        "condensation": _condensation,
        "continued": _continued,
    }
    killed = told[kind](what)
    cells = (
        f"`{name}`",
        killed,
        outcome.kills,
        len(outcome.attempts),
        outcome.called_again,
        different,
    )
    return f"| {' | '.join(map(str, cells))} |"


def history_rows(size: HistorySize) -> list[str]:
    """The table of what a turn costs."""
    cells = (
        f"{size.turns}",
        f"{size.prompt_tokens:,}",
        f"{statistics.median(size.activities):.0f}",
        f"{statistics.median(size.writes):.0f}",
        f"{size.median:,}",
        f"{size.slope:+.1f}",
        f"{size.history_bytes / 1e6:.2f} MB",
        f"{size.prompt_bytes / 1e6:.1f} MB",
    )
    return [
        (
            "| turns | tokens of the last prompt | activities a turn | archive writes a turn |"
            " history bytes a turn beyond its new text | growth of that from turn to turn | whole"
            " history | all prompts |"
        ),
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
        f"| {' | '.join(cells)} |",
    ]


def _group(name: str) -> str:
    return _points(GROUPS[name])


def _points(points: Sequence[str]) -> str:
    return f"the worker, at {len(points)} fail points in turn"


def _checkpoint(name: str) -> str:
    return f"{_points(CHECKPOINTS)}, over one checkpoint"


def _condensation(name: str) -> str:
    return f"{_points(CONDENSATION)}, over one summary"


def _victims(what: str) -> str:
    victims = strikes.STRUCK[what.partition("/")[0]][0]
    names = ", then ".join(dict.fromkeys(f"the {victim}" for victim in victims))
    return f"{names}, at random moments"


def _continued(seed: str) -> str:
    return (
        "the worker, the server or both, at random moments, and as the job goes on in another run"
    )


def kill_rows(path: Path) -> list[str]:
    """Make every experiment; the rows of those with kills."""
    wanted = experiments.names()
    with ThreadPoolExecutor(experiments.AT_ONCE) as pool:
        made = {
            name: future.result() for name, future in experiments.start(wanted, path, pool).items()
        }
    killed: Sequence[str] = [
        name for name in wanted if not name.startswith(experiments.UNDISTURBED)
    ]
    return [kill_row(name, made[name], made[experiments.reference(name)]) for name in killed]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = kill_rows(Path(folder))
        size = asyncio.run(measured_alone(Path(folder)))
    text = "\n".join([*HEAD, *rows, "", *history_rows(size)])
    hand_over(text, BLOCK, arguments.write)


if __name__ == "__main__":
    main()
