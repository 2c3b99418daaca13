"""A batch on the fleet of ``infra/local``, over two hosts, while one thing after another fails:
``python -m benchmarks.fleet [--jobs N] [--seconds S]``.

Each process is killed and started again, a host is cut off and comes back, the store refuses
writes, a host's clock jumps an hour. The jobs write a line in each turn, by a command, and go on
until all of that has happened; then each line has to be there once. ``--write FILE`` puts the table
between the marks of its name.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.blocks import hand_over
from infra.local.fleet import Fleet
from infra.local.network import HOSTS
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.jobsfile.load import load_jobs_file
from runtime.server.connection import connect
from runtime.server.target import Target

BLOCK, BATCH = "fleet", "fleet"
PATIENCE = 900.0
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
"""Where Debian's package libfaketime puts it."""

MODEL = """
import pathlib

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    done = pathlib.Path({gate!r}).exists()
    code = "finish(open('log').read())" if done else f"sh('echo {{n}} >> log')"
    return {{"code": code, "delay": 1.0}}
"""

HEAD = (
    "| what went wrong, as the batch went on | turns before | turns after, until the next |",
    "|---|--:|--:|",
)


@dataclass(frozen=True)
class Trouble:
    """Something that goes wrong within the block."""

    name: str
    happens: Callable[[], None]
    """Returns when it is over."""


@dataclass(frozen=True)
class Came:
    """What came of the jobs: the lines that they should have written and those that are not there,
    or more than once; and jobs that did not succeed, or whose archive is damaged.
    """

    lines: int
    lost: int
    twice: int
    failed: int
    damaged: int

    @property
    def well(self) -> bool:
        """Whether all is as if nothing had happened."""
        return not (self.lost or self.twice or self.failed or self.damaged)


def troubles(fleet: Fleet, seconds: float, library: Path) -> Iterator[Trouble]:
    """What goes wrong, in turn."""
    for name, component in fleet.components.items():
        # Bound now: the loop goes on before it happens.
        def killed(which: str = name) -> None:
            fleet.components[which].kill()
            fleet.components[which].start()

        yield Trouble(f"`{component.name}` is killed and started again", killed)
    laid = fleet.network
    if laid is not None:
        for host in HOSTS:

            def cut(which: str = host) -> None:
                laid.cut(which)
                time.sleep(seconds)
                laid.mend(which)

            yield Trouble(f"host `{host}` is cut off for {seconds:.0f} s", cut)

    def refused() -> None:
        fleet.refuse_writes(True)
        time.sleep(seconds)
        fleet.refuse_writes(False)

    yield Trouble(f"the store refuses writes for {seconds:.0f} s", refused)
    if library.exists():
        yield Trouble(
            "the clock of host `two` is an hour ahead from a restart of its workers to the next",
            lambda: _jump(fleet, library, seconds),
        )


def _jump(fleet: Fleet, library: Path, seconds: float) -> None:
    """Its workers have the hour more from when they are started again, until they are once more."""
    # With the clock ahead first, then as it was.
    for more in ({"LD_PRELOAD": str(library), "FAKETIME": "+1h"}, {}):
        for name, component in fleet.components.items():
            if name.startswith("two-"):
                component.kill()
                environment = {**component.environment, **more}
                replace(component, environment=environment).start()
        time.sleep(seconds if more else 0)


def batch(folder: Path, jobs: int) -> Callable[[], None]:
    """Submit a batch; what is returned has its jobs finish."""
    gate = folder / "gate"
    (folder / "model.py").write_text(MODEL.format(gate=str(gate)))
    (folder / "src").mkdir()
    asyncio.run(_submitted(jobs_file(folder, BATCH, jobs, "Write a line in each turn.")))
    return gate.touch


def jobs_file(folder: Path, batch: str, jobs: int, goal: str) -> Path:
    """A file of so many equal jobs that work on files: their model and sources lie beside it."""
    lines = [
        f"batch: {batch}",
        "defaults: {workspace: {from: ./src, write: true}, model: scripted/model.py,"
        " budget: {turns: 9999, wall: 2h}}",
        "jobs:",
        *(f"  - {{id: j{number}, goal: {goal}}}" for number in range(jobs)),
    ]
    file = folder / "jobs.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


async def _submitted(file: Path) -> None:
    store = open_store(os.environ["HOLDFAST_STORE"])
    async with connect(Target()) as connection:
        control = Control(connection.client, store)
        await submit(control, await plan_batch(control, load_jobs_file(file), rerun_failed=False))


def archives(jobs: int) -> list[JobArchive]:
    """The jobs' archives, opened anew."""
    store = open_store(os.environ["HOLDFAST_STORE"])
    return [JobArchive(store, BATCH, f"j{number}") for number in range(jobs)]


def turns_of(archive: JobArchive) -> int:
    """How many turns of a job are finished."""
    return len(list(archive.steps())) if archive.runs() else 0


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until it holds.

    Raises:
        TimeoutError: if it does not in ``PATIENCE``.
    """
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"this did not come true: {what}")
        time.sleep(0.5)


def came_of(archive: JobArchive) -> Came:
    """What came of one job."""
    run = archive.runs()[-1]
    end = archive.end(run)
    # The turn that finishes writes no line.
    wanted = turns_of(archive) - 1
    if end is None or end.status != "succeeded":
        return Came(wanted, 0, 0, 1, 0)
    found = Counter(str(end.result).split())
    lost = sum(found[str(number)] == 0 for number in range(wanted))
    twice = sum(found.values()) - (wanted - lost)
    return Came(wanted, lost, twice, len(archive.runs()) - 1, len(damage(verify_job(archive))))


def shown(rows: list[tuple[str, int]], came: Came, jobs: int, last: int) -> str:
    """The table, and what came of it."""
    lines = list(HEAD)
    for (name, before), (_, after) in zip(rows, [*rows[1:], ("", last)], strict=True):
        lines.append(f"| {name} | {before} | {after - before} |")
    lines += [
        "",
        f"{jobs} jobs, {came.lines} commands in {last} turns: {came.lost} lost, {came.twice} twice,"
        f" {came.failed} jobs failed, {came.damaged} faults found by `verify`.",
    ]
    return "\n".join(lines)


def suffered(
    fleet: Fleet, folder: Path, jobs: int, seconds: float, library: Path = FAKETIME
) -> tuple[str, Came]:
    """The table of a batch that suffered all of it, and what came of the jobs."""
    rows: list[tuple[str, int]] = []
    finish = batch(folder, jobs)
    made = archives(jobs)

    def further(known: list[int]) -> bool:
        return all(turns_of(one) > before for one, before in zip(made, known, strict=True))

    wait_for(lambda: further([0] * jobs), "each job has done a turn")
    for trouble in troubles(fleet, seconds, library):
        known = [turns_of(one) for one in made]
        rows.append((trouble.name, sum(known)))
        trouble.happens()
        # What was done before it was over may have been on its way.
        known = [turns_of(one) for one in made]
        wait_for(lambda known=known: further(known), f"each job goes on after {trouble.name}")
    finish()
    wait_for(
        lambda: all(one.end(one.runs()[-1]) is not None for one in made), "all jobs have ended"
    )
    each = [came_of(one) for one in made]
    whole = Came(*(sum(getattr(one, name) for one in each) for name in Came.__annotations__))
    last = sum(turns_of(one) for one in made)
    return shown(rows, whole, jobs, last), whole


def main() -> None:
    """Run it and print the table; ends with an error if something was lost or done twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each outage")
    parser.add_argument("--faketime", type=Path, default=FAKETIME, help="libfaketime's library")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    # Deleted only where all went well so far: else its logs are needed.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-fleet-"))
    fleet = Fleet.at(folder / "fleet")
    os.environ.update(fleet.environment)
    try:
        fleet.up()
        text, came = suffered(fleet, folder, options.jobs, options.seconds, options.faketime)
    finally:
        fleet.down()
    hand_over(text, BLOCK, options.write)
    shutil.rmtree(folder, ignore_errors=True)
    if not came.well:
        raise SystemExit("something was lost, or done twice")


if __name__ == "__main__":
    main()
