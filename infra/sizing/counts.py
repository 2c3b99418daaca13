"""What a job and a turn take, as counts and bytes, and where each figure is held to what the
program does.

Counts are those of a job that nothing happens to: no retry, no tool, no summary, no sub-job. Tests
assert them (``tests/workflow/test_workflow_turn_counts.py``, ``tests/infra/test_infra_capacity.py``
), so a change of the program that moves one fails there; ``benchmarks/sized.py`` holds them to a
batch on a fleet. Figures of processors and of memory are
read from the tables of ``docs/benchmarks.md``, which their programs write.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.blocks import block_of

BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Counts:
    """What is asked of the server and of the store.

    ``actions`` are what Temporal Cloud bills as Actions; ``writes``, ``reads`` and ``lists`` are
    requests to the store.
    """

    actions: int
    writes: int
    reads: int
    lists: int


A_TURN = Counts(actions=2, writes=2, reads=1, lists=2)
"""Actions: the activity, and the marker of the statement's verdict; a heartbeat is another one."""

A_JOB = Counts(actions=8, writes=3, reads=5, lists=13)
"""Actions: the start as a child, which is two, the mark of the patches that it began with, which is
two, the activities ``begin`` and ``end``, two changes of the search attributes. Writes: definition,
begin and end of the run. What it reads and lists, at its begin, its end, and as each process takes
it up, is as ``benchmarks/sized.py`` counted it on two hosts with two roles.
"""

A_FURTHER_RUN = 7
"""Actions where a job goes on in another run: its start, the mark of its patches, which is two, the
checkpoint saved, the change of the memo that tells its task apart, the timer at whose end a cancel
is looked for, the checkpoint read.
"""

A_WORKSPACE = 1
"""Actions of a job with files of its own: the activity ``open``."""

HISTORY_OF_A_WORKSPACE = 4_500
"""Bytes in the history of a job with files of its own, beside its effects."""

HISTORY_OF_A_JOB = 9_900
"""Bytes of a job's history beside its turns."""

HISTORY_OF_A_CHILD = 3_950
"""Bytes in the history of its batch for a job."""

ARCHIVE_OF_A_JOB = 4_450
"""Bytes in the archive for a job beside what each turn takes: most are its first prompt."""

ARCHIVE_OF_A_TURN = 1_400
"""Bytes in the archive for a turn, beside its new text."""

STORED_OF_A_RESULT = 0.6
"""Bytes in the archive for a byte that an effect brings, beside those of the prompt that has it:
its result is an object of its own. Of random letters, compressed.
"""

FIRST_HEARTBEAT_SECONDS = 1.0
"""A call that ends before sends none."""

HEARTBEAT_SECONDS = 2.0
"""A heartbeat reaches the server this often at most while a call lasts."""

REQUESTS_OF_A_TURN = 4
"""gRPC requests of a turn, an effect, and of each other activity of a job: a workflow task and an
activity, each asked for and answered.
"""

OTHER_ACTIVITIES = 2
"""``begin`` and ``end``; ``open`` where a job has files of its own."""

MOST_READS = 40
"""Attempts that a prompt is made of at most, in a conversation that only grows."""

KEYFRAME_EVERY = 32
"""Turns after which a step has all of the job's state, and not what changed."""

PROCESSOR_SECONDS_OF_A_REQUEST = 0.0018
"""Of a worker, for a request to S3: boto3 took 1.3 to 2.2 ms, whatever was asked. The benchmarks'
turns have a directory.
"""

PROCESSOR_SECONDS_OF_A_START = 4.0
"""Of a worker's process with models, once, after it has begun to serve: it loads what models are
called by. One that has nothing to do then takes 2 ms a second.
"""

CALLS_OF_A_WORKER = 256
"""Activities that a worker's process has at a time."""

JOBS_OF_A_WORKER = 1_000
"""Jobs that it keeps in memory."""

LETTERS_OF_A_TURN = 1_200
"""Bytes of new text in a turn of the archive's benchmark (A): random letters, the worst to
compress.
"""


@cache
def rows(block: str) -> tuple[tuple[str, ...], ...]:
    """The rows of the first table between the marks of ``block`` in ``docs/benchmarks.md``."""
    return _table(block_of(BENCHMARKS.read_text(), block))


def _table(text: str) -> tuple[tuple[str, ...], ...]:
    lines = text.strip().split("\n\n")[0].splitlines()
    return tuple(tuple(cell.strip() for cell in line.strip("| ").split("|")) for line in lines[2:])


def number(cell: str) -> float:
    """The number that a cell begins with."""
    return float(cell.split()[0].replace(",", "").rstrip("%"))


def history_of_a_turn() -> float:
    """Bytes that a turn adds to the history beyond its new text: of a job of 200 turns, which
    ``tests/workflow/test_workflow_history_size.py`` runs again.
    """
    block = block_of(BENCHMARKS.read_text(), "durability")
    # One row, or the page is another than this reads: an error, and no wrong figure.
    (row,) = _table(block.split("\n\n")[1])
    return number(row[4])


def processor_seconds() -> float:
    """Processor time of a turn in a worker and its interpreters, with ten jobs side by side."""
    (row,) = (row for row in rows("turn") if row[:3] == ("10", "1", "a job"))
    return (number(row[5]) + number(row[6])) / 1000


def embedded_turns_a_second() -> float:
    """Turns, each with one activity, that jobs were seen to make a second on the embedded server
    and their workers, on two cores: bare activities take a quarter of their time.
    """
    return max(number(row[3]) for row in rows("turn") if row[2] in {"a job", "with a stand-in"})


def worker_mib() -> float:
    """Memory of a worker's process with its interpreters: the most that a benchmark saw."""
    block = block_of(BENCHMARKS.read_text(), "endless")
    lines = block.split("\n\n")[1].splitlines()
    return max(number(cell) for cell in lines[2].strip("| ").split("|")[1:])


def turns_of_a_run() -> float:
    """Turns after which a job goes on in another run."""
    row = rows("endless")[0]
    return number(row[3]) / number(row[4])


def stored_of_a_byte(turns: float) -> float:
    """Bytes in the archive for a byte of new text, in a job of so many turns: random letters, of
    which a longer job has more stored a second time.
    """
    head = "| load | turns | requests as sent |"
    table = _table(head + BENCHMARKS.read_text().split(head, 1)[1])
    told = [(number(row[1]), row) for row in table if row[0] == "A"]
    row = next((row for most, row in told if turns <= most), told[-1][1])
    return (number(row[4]) + number(row[5])) / LETTERS_OF_A_TURN


def readers(processes: float, turns: float) -> float:
    """How many other processes read the step of a turn, in the mean over the job's turns: each that
    goes on with the job later has all steps that were written since it last did. Any process takes
    any turn, so one of W takes none of the n turns that are left with (1 - 1/W)^n. Nobody reads
    back beyond the last step that has everything.
    """
    others = another(processes)
    left = math.floor(turns)
    all_of_them = (processes - 1) * sum(1 - others**n for n in range(left)) / left
    return min(all_of_them, others * (KEYFRAME_EVERY + 1) / 2)


def another(processes: float) -> float:
    """How often what goes on with a job is another process than the one before it."""
    return 1 - 1 / processes


def attempts_read(processes: float, turns: float) -> float:
    """How many attempts of a job are read for the prompts of its turns: a process that goes on
    where another one was puts the prompt before together again, from all attempts that it is made
    of, its own too.
    """
    # Before it would be one too many, a prompt takes over what all of them have of it.
    made_of = sum(1 + before % MOST_READS for before in range(math.floor(turns) - 1))
    return another(processes) * made_of


@dataclass(frozen=True)
class Effect:
    """A command in a workspace of 1,000 files, of which it changes one: at most two writes, and
    two Actions beside its heartbeats: the activity, and the marker of what the statement did until
    then.
    """

    actions: int
    reads: int
    """It looks for its own result, as a turn does, and reads what lists its files, for the digest;
    the process that takes the turn reads the result.
    """
    writes: int
    lists: int
    """It looks whether its files are archived."""
    stored_bytes: float
    processor_seconds: float


def effect() -> Effect:
    """What an effect takes, by the table of workspaces."""
    (row,) = (row for row in rows("workspace") if row[:3] == ("1,000", "1", "overlay"))
    return Effect(
        actions=2,
        reads=3,
        writes=int(number(row[5])),
        lists=1,
        stored_bytes=number(row[6]),
        processor_seconds=number(row[4]) / 1000,
    )
