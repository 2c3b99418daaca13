"""What two loads need, cost and break first, as Markdown, by the model of ``infra/capacity.py``.

``python -m docs_tools.capacity`` prints it; ``--write`` puts it between the marks of
``docs/capacity.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.blocks import hand_over
from infra.sizing.load import Load
from infra.sizing.model import Need
from infra.sizing.told import breaking, costs, needs, sources

DOCUMENT = Path(__file__).parent.parent / "docs" / "capacity.md"
BLOCK = "capacity"
JOBS = (10_000, 1_000_000)
"""Jobs a day, all else as ``Load`` has it."""


def tables() -> str:
    """The tables of the page."""
    several = [Need.of(Load(jobs)) for jobs in JOBS]
    first = [
        f"### What breaks first at {one.load.jobs_per_day:,.0f} jobs a day\n\n{breaking(one)}"
        for one in several
    ]
    priced = f"### Prices\n\n{sources({})}"
    return "\n\n".join([needs(several), costs(several, {}), *first, priced])


if __name__ == "__main__":
    hand_over(tables(), BLOCK, DOCUMENT if "--write" in sys.argv[1:] else None)
