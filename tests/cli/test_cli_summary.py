"""What ``run`` tells of jobs that it goes on with, and, interrupted, of those whose last moments it
did not watch.
"""

import random

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.spec.models import BatchSpec
from runtime.base.values import JobKey, Usage
from runtime.cli.summary import Seen, summary
from runtime.client.plans import JobPlan, Plan, Start
from runtime.job.phases import Phase
from runtime.job.stops import JobStatus
from tests.archive.archive_jobs import Written, chat, write_run
from workflows.messages import JobProgress

USED = Usage(prompt=101 + 102, completion=2 * 12)
"""By two turns of ``write_run``."""


def written(store: MemoryStore, job: str, end: str = "") -> None:
    """A job of two turns."""
    of_job = Written(JobArchive.of(store, JobKey(batch="b", job=job)))
    parent = write_run(of_job, "r", range(1, 3), None, chat(random.Random(1)))
    if end:
        of_job.archive.write_end(
            NewEnd(
                run="r",
                turn=2,
                parent=parent,
                status=end,
                result="made",
                cost_usd=0.002,
                usage=USED,
            )
        )


def progress_of(turn: int, tokens: int, cost: float) -> JobProgress:
    """As a job tells it."""
    usage = Usage(prompt=tokens)
    return JobProgress(
        status=JobStatus.RUNNING, phase=Phase.MODEL, turn=turn, usage=usage, cost_usd=cost
    )


@pytest.mark.parametrize("seen", [True, False])
def test_an_open_job_is_told_with_all_that_it_used(seen: bool) -> None:
    """Its call was in flight: its tokens are paid for."""
    store, progress = MemoryStore(), {}
    written(store, "open")
    if seen:
        progress["open"] = progress_of(2, 113, 0.001)
    (row,) = summary(store, Plan(BatchSpec(batch="b", jobs=()), ("open",)), Seen({}, progress), [])
    told = [row[name] for name in ("status", "turns", "tokens", "cost_usd")]
    assert told == ["open", 2, USED.total, 0.002]


def test_what_a_turn_used_that_is_not_finished_is_told_too() -> None:
    """Of attempts that failed the archive's steps know nothing yet."""
    store, most = MemoryStore(), progress_of(3, 900, 0.9)
    written(store, "open")
    plan = Plan(BatchSpec(batch="b", jobs=()), ("open",))
    (row,) = summary(store, plan, Seen({}, {"open": most}), [])
    assert [row[name] for name in ("turns", "tokens", "cost_usd")] == [3, 900, 0.9]


@pytest.mark.parametrize(
    ("end", "told"), [("succeeded", ("succeeded", "made")), ("failed", ("open", None))]
)
def test_a_job_that_ended_unseen(end: str, told: tuple[str, str | None]) -> None:
    """What failed may begin again by itself."""
    store = MemoryStore()
    written(store, "ended", end)
    (row,) = summary(store, Plan(BatchSpec(batch="b", jobs=()), ("ended",)), Seen({}), [])
    assert (row["status"], row["result"]) == told
    assert (row["turns"], row["tokens"]) == (2, USED.total)


def test_what_the_run_before_used_is_not_told_again() -> None:
    """The job was to begin anew and did not come to it."""
    store = MemoryStore()
    written(store, "again", "failed")
    known = {"again": JobPlan("again", Start.RERUN, before="r")}
    (row,) = summary(store, Plan(BatchSpec(batch="b", jobs=()), ("again",), known), Seen({}), [])
    assert [row[name] for name in ("status", "turns", "tokens")] == ["open", 0, 0]


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ((4,), "1 resumed at turn 4"),
        ((0,) * 9, "9 resumed at turn 0"),
        ((4, 4, 11), "3 resumed at turns 4, 4 and 11"),
        (tuple(range(1, 31)), "30 resumed at turns 1 to 30"),
    ],
)
def test_turns_at_which_jobs_are_resumed(turns: tuple[int, ...], told: str) -> None:
    """One for each, but where all are the same or they are many."""
    known = {f"j{n}": JobPlan(f"j{n}", Start.RESUMED, turn=turn) for n, turn in enumerate(turns)}
    assert Plan(BatchSpec(batch="b", jobs=()), tuple(known), known).sentence() == told
