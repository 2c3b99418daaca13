"""What a batch that nothing happens to takes of the fleet of ``infra/local``, beside what the model
of ``infra/capacity.py`` says of it: ``python -m benchmarks.sized [--jobs N] [--turns N] ...``.

Actions and the bytes of histories are counted in the histories; heartbeats and requests by the
Temporal server, requests and bytes of the store by the S3 server, in their own metrics; the
database's size in its file; processor time by the system, for the workers with all that they start.
``--write FILE`` puts the table between the marks of its name.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sqlite3
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.blocks import hand_over
from benchmarks.fleet import jobs_file
from infra.local.fleet import BUCKET, Fleet
from infra.local.network import HOSTS
from infra.sizing import counts
from infra.sizing.actions import actions
from infra.sizing.load import Load
from infra.sizing.model import Job
from infra.sizing.told import amount
from runtime.archive.stores import open_store
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.jobsfile.load import load_jobs_file
from runtime.server.connection import Connection, connect
from runtime.server.target import Target

BLOCK, BATCH = "sized", "sized"
FILES = 100
"""Files of the workspace that all jobs have a copy of. They are archived once for the batch, which
is not in the model.
"""

MODEL = """
import random

def letters(count):
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=count))

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    lines = [f"said = '{{letters({said})}}'"]
    lines += [f"sh('echo {{n}} > 0.txt; tr -dc a-z < /dev/urandom | head -c {new}')"] * {effects}
    if n + 1 == {turns}:
        lines.append("finish(1)")
    return {{"code": "\\n".join(lines), "delay": {delay}}}
"""
"""New text is random, as the model has it: the worst to compress."""


@dataclass(frozen=True)
class Used:
    """What was taken; of a time before and one after, the difference is the batch's."""

    actions: float = 0
    history_bytes: float = 0
    heartbeats: float = 0
    requests: float = 0
    writes: float = 0
    lists: float = 0
    reads: float = 0
    archive_bytes: float = 0
    database_bytes: float = 0
    processor_seconds: float = 0

    def since(self, before: Used) -> Used:
        """What has come to it since then."""
        return Used(*(getattr(self, one.name) - getattr(before, one.name) for one in fields(Used)))


ROWS = {
    "actions": "Temporal Actions, with heartbeats",
    "heartbeats": "heartbeats",
    "requests": "requests for tasks, their answers and heartbeats",
    "history_bytes": "bytes of histories",
    "database_bytes": "bytes of the database, SQLite's (the model: of histories)",
    "writes": "S3 PUT",
    "lists": "S3 LIST",
    "reads": "S3 GET and HEAD",
    "archive_bytes": "bytes written to S3",
    "processor_seconds": "seconds of the workers' processors",
}
"""What the table tells, each by the name that ``Used`` and the model have for it."""


def samples(text: str, name: str) -> list[tuple[Mapping[str, str], float]]:
    """What a page of metrics has for one of them: labels, value."""
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)) for labels, value in found]


def of_server(page: str) -> dict[str, float]:
    """Requests for tasks that had one, their answers, and heartbeats: by the Temporal server.

    A poll without a task is idleness, and what commands ask for is not the batch's.
    """
    asked: Counter[str] = Counter()
    for labels, value in samples(page, "service_requests"):
        if labels["service_name"] == "frontend" and labels["namespace"] == "default":
            asked[labels["operation"]] += int(value)
    beats = asked["RecordActivityTaskHeartbeat"]
    answers = sum(
        count
        for operation, count in asked.items()
        if re.fullmatch(r"Respond(Workflow|Activity)Task\w+", operation)
    )
    return {"heartbeats": beats, "requests": 2 * answers + beats}


def of_store(page: str) -> dict[str, float]:
    """Requests of each kind, and the bytes that came: by the S3 server."""
    asked: Counter[str] = Counter()
    for labels, value in samples(page, "SeaweedFS_s3_request_total"):
        if labels["bucket"] == BUCKET:
            asked[labels["type"]] += int(value)
    came = samples(page, "SeaweedFS_s3_bucket_traffic_received_bytes_total")
    return {
        "writes": asked["PUT"],
        "lists": asked["LIST"],
        "reads": asked["GET"] + asked["HEAD"],
        "archive_bytes": sum(value for labels, value in came if labels["bucket"] == BUCKET),
    }


def processor_seconds(roots: Iterable[int]) -> float:
    """Processor time of processes, all below them, and of those below that have ended."""
    parents, ticks = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(folder.name)] = int(stat[1])
            ticks[int(folder.name)] = sum(map(int, stat[11:15]))
    tree = set(roots)
    while more := {one for one, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(ticks.get(one, 0) for one in tree) / os.sysconf("SC_CLK_TCK")


def database_bytes(file: Path) -> int:
    """Bytes of the pages that the database uses, what stands in its log of writes too."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)
    try:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    finally:
        connection.close()
    return int((pages - free) * size)


def counted(fleet: Fleet) -> Used:
    """What the fleet's processes have taken until now; no histories."""
    told = fleet.exporters()
    workers = [one.pid for one in fleet.workers if one.pid is not None]
    return Used(
        **of_server(_page(told["temporal"])),
        **of_store(_page(told["s3"])),
        database_bytes=database_bytes(fleet.folder / "temporal.db"),
        processor_seconds=processor_seconds(workers),
    )


def _page(addresses: Iterable[str]) -> str:
    (address,) = addresses
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


def written(folder: Path, load: Load) -> Path:
    """The jobs file of a load's batch, with all that it names."""
    said = int(load.completion_tokens * load.bytes_per_token)
    new = int(load.new_tokens * load.bytes_per_token / max(load.effects, 1))
    model = MODEL.format(
        said=said,
        new=new,
        effects=int(load.effects),
        turns=int(load.turns),
        delay=load.call_seconds,
    )
    (folder / "model.py").write_text(model)
    (folder / "src").mkdir()
    for number in range(FILES):
        (folder / "src" / f"{number}.txt").write_text(f"{number}\n")
    return jobs_file(folder, BATCH, int(load.jobs_per_day), "Go on.")


async def carried_out(fleet: Fleet, file: Path, jobs: int) -> Used:
    """What a batch took from its submission until its workflow had ended."""
    async with connect(Target()) as connection:
        control = Control(connection.client, open_store(os.environ["HOLDFAST_STORE"]))
        before = counted(fleet)
        await submit(control, await plan_batch(control, load_jobs_file(file), rerun_failed=False))
        await connection.client.get_workflow_handle(f"holdfast/{BATCH}").result()
        took = counted(fleet).since(before)
        billed, size = await _histories(connection, jobs)
    known = {one.name: getattr(took, one.name) for one in fields(Used)}
    known |= {"actions": billed + took.heartbeats, "history_bytes": size}
    return Used(**known)


async def _histories(connection: Connection, jobs: int) -> tuple[int, int]:
    """Actions and bytes of the histories of a batch and of its jobs."""
    billed = size = 0
    for name in [BATCH, *(f"{BATCH}/j{number}" for number in range(jobs))]:
        handle = connection.client.get_workflow_handle(f"holdfast/{name}")
        events = (await handle.fetch_history()).events
        billed += actions(events)
        size += sum(event.ByteSize() for event in events)
    return billed, size


def said(load: Load) -> Used:
    """What the model says of all jobs of a load, on hosts that have just been started."""
    job, jobs = Job.of(load, len(HOSTS)), load.jobs_per_day
    known = {name: getattr(job, name) * jobs for name in ROWS if name != "database_bytes"}
    known["processor_seconds"] += counts.PROCESSOR_SECONDS_OF_A_START * len(HOSTS)
    return Used(**known, database_bytes=job.history_bytes * jobs)


def shown(load: Load, took: Used) -> str:
    """The table."""
    model = said(load)
    lines = [
        f"{load.jobs_per_day:.0f} jobs of {load.turns:.0f} turns, with calls of"
        f" {load.call_seconds:g} s, {load.effects:.0f} commands a turn and"
        f" {(load.completion_tokens + load.new_tokens) * load.bytes_per_token:,.0f} bytes of new"
        " text in each:",
        "",
        "| of the batch | the model | counted | ratio |",
        "|---|--:|--:|--:|",
    ]
    for name, label in ROWS.items():
        expected, found = getattr(model, name), getattr(took, name)
        ratio = f"{found / expected:.2f}" if expected else "-"
        lines.append(f"| {label} | {amount(expected)} | {amount(found)} | {ratio} |")
    return "\n".join(lines)


def measured(load: Load) -> Used:
    """What a load's batch takes of a fleet of its own."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-sized-"))
    fleet = Fleet.at(folder / "fleet")
    os.environ.update(fleet.environment)
    # One for each role and host: the model's reads are those of so many processes.
    os.environ["HOLDFAST_PROCESSES"] = "1"
    try:
        fleet.up()
        file = written(folder, load)
        return asyncio.run(carried_out(fleet, file, int(load.jobs_per_day)))
    finally:
        fleet.down()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--effects", type=int, default=1, help="commands of a turn")
    parser.add_argument("--call-seconds", type=float, default=5.0)
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    load = Load(
        options.jobs,
        turns=options.turns,
        effects=options.effects,
        effect_seconds=0,
        call_seconds=options.call_seconds,
        new_tokens=Load.new_tokens if options.effects else 0,
    )
    hand_over(shown(load, measured(load)), BLOCK, options.write)


if __name__ == "__main__":
    main()
