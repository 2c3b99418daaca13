"""What questions about a long job cost: ``python benchmarks/lookup.py --help``.

A chat whose prompt grows by a reply and a result a turn, with a last line that is another each
turn. Each question is put to a process of its own, as a user's is, so the time holds the start of
Python. ``cpu s`` is processor time, which other programs beside it change less than ``seconds``;
``objects`` is how many objects are read of the store.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Run as a file, Python looks in this directory and not in the one above.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.archive.forms import Capture, NewAttempt, NewStep, StoredReply
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.values import StepRef, ToolCall
from runtime.projection.segments import Role, Segment, SegmentKind, delta_between

_ROOT = Path(__file__).resolve().parent.parent
_RUN = "019a5b7e-1111-7222-8333-444455556666"
_COUNTED = """
import sys
from runtime.archive.stores.directory import DirectoryStore
read, counted = DirectoryStore.get, []
DirectoryStore.get = lambda self, key: (counted.append(key), read(self, key))[1]
from runtime.cli.main import main
code = main(sys.argv[1:])
print(len(counted), file=sys.stderr)
raise SystemExit(code)
"""


def main() -> None:
    """Write the job, and print a row for each question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument(
        "--store", help="where the job is, or is written (default: a temporary directory)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or f"{folder}/archive"
        write(store, options.turns)
        print(f"{'question':<34} {'seconds':>7} {'cpu s':>6} {'objects':>7} {'MB printed':>10}")
        # The turn that is looked for is as far from either end in a job of any length.
        middle = options.turns // 2
        for question in (
            ["blame", "job"],
            ["why", "job", f"Result {middle}:"],
            ["why", "job", "--gone", f"turns are left: {options.turns - middle + 1}"],
            ["log", "job"],
            ["export", "job", "--delta"],
            ["export", "job", "--turns", f"{middle}..{middle + 10}"],
        ):
            ask(question, store, folder)


def write(store: str, turns: int) -> None:
    """The job, unless it is there."""
    archive = JobArchive(open_store(store), "nightly", "job")
    if archive.runs():
        return
    # Seeded, so that each store that is written holds the same job.
    rng = random.Random(1)
    archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    parent: StepRef | None = None
    kept = [_segment("The contract.\n" * 300, "contract", SegmentKind.CONTRACT)]
    for turn in range(1, turns + 1):
        reply = archive.reply_segment(parent)
        news = _segment(
            f"Result {turn}:\n{''.join(rng.choices(string.ascii_letters, k=250))}",
            f"event:{turn}.1",
        )
        kept += [*([reply] if reply is not None else []), news]
        tail = _segment(f"turns are left: {turns - turn}", "tail", SegmentKind.BUDGET)
        parent = _turn(archive, turn, parent, [*kept, tail])


def _turn(archive: JobArchive, turn: int, parent: StepRef | None, layout: list[Segment]) -> StepRef:
    messages = [{"role": s.role.value, "content": s.text} for s in layout]
    code = json.dumps({"code": f"x = {turn}"})
    attempt = archive.begin_attempt(
        NewAttempt(
            run=_RUN,
            turn=turn,
            parent=parent,
            delta=delta_between(archive.layout(parent), archive.reply_segment(parent), layout),
            model={"name": "openai/m-1"},
            capture=Capture.WIRE,
            request=json.dumps({"model": "m-1", "messages": messages}).encode(),
            url="http://127.0.0.1:9/v1/chat/completions",
            started_at="2026-01-01T00:00:00Z",
        )
    )
    reply = StoredReply(
        text=f"I look at {turn}.",
        tool_calls=(ToolCall(id=f"call_{turn}", name="python", arguments=code),),
        tokens=9,
    )
    return archive.finish_step(
        NewStep(
            run=_RUN,
            turn=turn,
            attempt=attempt,
            reply=reply,
            response=b"{}",
            finished_at="2026-01-01T00:00:01Z",
            reset_event_id=0,
        )
    )


def _segment(text: str, origin: str, kind: SegmentKind = SegmentKind.RESULT) -> Segment:
    return Segment(kind=kind, origin=origin, role=Role.USER, text=text, tokens=len(text) // 4)


def ask(question: list[str], store: str, folder: str) -> None:
    """One question, and its row."""
    environment = {
        **os.environ,
        "HOLDFAST_HOME": folder,
        "HOLDFAST_STORE": store,
        "PYTHONPATH": str(_ROOT),
    }
    before, used = time.perf_counter(), _processor_time()
    with (Path(folder) / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", _COUNTED, *question],
            env=environment,
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
        seconds, cpu, size = time.perf_counter() - before, _processor_time() - used, out.tell()
    lines = done.stderr.decode().splitlines() or ["-"]
    if done.returncode:
        sys.exit("\n".join(lines))
    words = " ".join(part if " " not in part else repr(part) for part in question)
    print(f"{words:<34} {seconds:>7.2f} {cpu:>6.2f} {lines[-1]:>7} {size / 1e6:>10.2f}")


def _processor_time() -> float:
    """Seconds that all questions so far took of a processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
