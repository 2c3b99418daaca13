"""What it costs to list a job's variables after a statement: in the sandbox, and on the host.

Run with ``python -m benchmarks.namespace`` (``--json`` for one JSON object). Times are processor
time in milliseconds, that of the interpreter's process from ``/proc``; each is the mean of enough
runs to be measured. ``cut`` says whether a bound of the walk left something out. ``diff`` is what
naming one changed place costs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic_monty import Monty, MontySession, ResourceLimits

from runtime.interpreter import listing, namespace, pool
from runtime.interpreter.definitions import Definitions
from runtime.interpreter.paths import changed_paths

SIZES = (10, 1_000, 100_000)
SHAPES = {
    "numbers": "v = list(range({n}))",
    "texts": "v = ['item %d' % i for i in range({n})]",
    "pairs": "v = [(i, 'n%d' % i) for i in range({n} // 2)]",
    "records": (
        "v = [dict(id=i, name='n%d' % i, share=i * 0.5, done=True) for i in range({n} // 4)]"
    ),
    "nested": "v = dict(('k%d' % i, dict(a=i, b=[i, i + 0.5])) for i in range({n} // 5))",
    "instances": (
        "class P:\n    def __init__(self, x):\n        self.x = x\n        self.y = [x]\nv = [P(i)"
        " for i in range({n} // 2)]"
    ),
}
MIN_SECONDS = 0.2
TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are in milliseconds."""

    shape: str
    elements: int
    sandbox_ms: float
    host_ms: float
    diff_ms: float
    characters: int
    cut: bool


def _used(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK


def measure(session: MontySession, shape: str, size: int) -> Row:
    """One row, in a session of its own."""
    source = SHAPES[shape].format(n=size)
    session.feed_run(namespace.PRELUDE)
    session.feed_run(source)
    definitions = Definitions().after(source)
    pid = session.worker_pid
    assert pid is not None
    runs, host, before = 0, 0.0, _used(pid)
    # Often enough for the hundredths of a second in which /proc counts.
    while runs < 2 or (_used(pid) - before < MIN_SECONDS and runs < 400):
        listed = session.feed_run(namespace.LISTING)
        began = time.process_time()
        contents = listing.contents_of(session, definitions, source, frozenset())
        namespace.parse(listed, frozenset(), contents)
        host += time.process_time() - began
        runs += 1
    sandbox = (_used(pid) - before) / runs
    key = f"'k{size // 10}'" if shape == "nested" else str(size // 10)
    session.feed_run(f"v[{key}] = None")
    now = listing.contents_of(session, definitions, "", frozenset())
    began = time.process_time()
    changed_paths("v", contents, now)
    diff = time.process_time() - began
    told = contents.told["v"]
    return Row(
        shape,
        size,
        sandbox * 1000,
        host / runs * 1000,
        diff * 1000,
        contents.chars,
        bool(told.partial),
    )


def rows() -> list[Row]:
    """Every shape at every size."""
    limits = ResourceLimits(
        max_memory=pool.MAX_MEMORY_BYTES, max_recursion_depth=pool.MAX_RECURSION
    )
    found: list[Row] = []
    with Monty() as processes:
        for shape in SHAPES:
            for size in SIZES:
                with processes.checkout(limits=limits) as session:
                    found.append(measure(session, shape, size))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = rows()
    if arguments.json:
        print(json.dumps([asdict(row) for row in found]))
        return
    print(
        f"{'shape':<10} {'elements':>9} {'sandbox ms':>11} {'host ms':>9} {'diff ms':>9}"
        f" {'characters':>11}  cut"
    )
    for row in found:
        times = f"{row.sandbox_ms:>11.2f} {row.host_ms:>9.2f} {row.diff_ms:>9.2f}"
        print(
            f"{row.shape:<10} {row.elements:>9,} {times} {row.characters:>11,} "
            f" {'yes' if row.cut else 'no'}"
        )


if __name__ == "__main__":
    main()
