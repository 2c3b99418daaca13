"""Watching a batch: what is asked in a round, what a picture tells, and the table's bounds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activities.batch_contracts import PageRef
from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.pages import FOLDER, write_page
from runtime.archive.stores import MemoryStore, ObjectStore, open_store
from runtime.base.errors import ArchiveError, NotFound
from runtime.base.values import JobKey, Usage
from runtime.cli.batch_board import drawn, sums
from runtime.cli.exit_codes import exit_code, worst
from runtime.cli.main import main
from runtime.client.batch_watch import ASKED, BatchWatch, ErrorKind, OpenJob, Picture
from runtime.client.standing import Standing, Trouble
from runtime.job.phases import Phase
from runtime.job.stops import JobStatus
from tests.archive.archive_jobs import Written, chat, write_run
from workflows.messages import BatchEnd, BatchNews, BatchState, JobOutcome, JobProgress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


PAGE = {"c": "after r", "d": "new"}
"""Jobs of a page, and by which orders they begin."""


def end(
    store: ObjectStore, id: str, status: str, reason: str = "", turns: int = 4, run: str = "r"
) -> None:
    written = Written(JobArchive(store, "night", id))
    parent = write_run(written, run, range(1, turns + 1), None, chat(random.Random(1), turns))
    written.archive.write_end(
        NewEnd(
            run=run,
            turn=turns,
            parent=parent,
            status=status,
            reason=reason,
            usage=Usage(prompt=100),
            cost_usd=0.5,
            ended_at="2026-01-01T11:00:00Z",
        )
    )


@dataclass
class Served:
    """A server's side: what the batch says in each round, and who was asked."""

    news: list[BatchNews | None]
    trouble: Trouble | None = None
    asked: list[str] = field(default_factory=list)
    phases: dict[str, Phase] = field(default_factory=dict)
    paused: str = ""
    awaits: dict[str, str] = field(default_factory=dict)
    known: list[int] = field(default_factory=list)
    state: BatchState = field(default_factory=BatchState)

    async def batch_state(self, batch: str) -> BatchState:
        return self.state

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        self.known.append(known)
        return self.news.pop(0)

    async def standing(self, key: JobKey) -> Standing:
        self.asked.append(key.job)
        seen = JobProgress(
            status=JobStatus.RUNNING,
            turn=2,
            phase=self.phases.get(key.job, Phase.MODEL),
            usage=Usage(prompt=10),
            statement="step()",
            paused=key.job in self.paused,
        )
        since = NOON - timedelta(seconds=len(self.asked))
        return Standing(
            "r",
            progress=seen,
            trouble=self.trouble,
            since=since,
            awaits=self.awaits.get(key.job, ""),
        )


def watch(store: MemoryStore, served: Served | None, *clock: float) -> BatchWatch:
    ticks = iter(clock)
    return BatchWatch(store, served, "night", lambda: next(ticks), lambda: NOON)  # type: ignore[arg-type]


@pytest.mark.slow
async def test_a_few_open_jobs_are_asked_in_a_round_and_each_comes_about() -> None:
    """Of a hundred open jobs so many are asked as a screen shows, others in the next round."""
    names = tuple(f"j{number:03}" for number in range(100))
    served = Served([BatchNews(waiting=3, open=names)] * 7)
    following = watch(MemoryStore(), served, *range(7)).pictures()
    first = await anext(following)
    assert len(served.asked) == ASKED
    assert first.counts == {"queued": 3, "running": 100}
    assert (first.turns, first.tokens, first.jobs) == (2 * ASKED, 10 * ASKED, 103)
    for _ in range(6):
        await anext(following)
    assert {*served.asked} == {*names}
    await following.aclose()


async def test_a_job_that_can_do_nothing_by_itself_is_not_told_as_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the morning five jobs that wait for a person look otherwise than five that work."""
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    served = Served(
        [BatchNews(waiting=3, open=("a", "b", "c", "d", "e"))] * 2,
        phases={"a": Phase.APPROVAL, "b": Phase.PAUSED, "c": Phase.ASLEEP},
        awaits={"d": "role:sandboxes"},
    )
    following = watch(MemoryStore(), served, 0.0, 1.0).pictures()
    first = await anext(following)
    assert first.counts == {"queued": 3, "running": 1, "waiting": 3, "paused": 1}
    assert sums(first) == "night  3 queued, 1 running, 3 waiting, 1 paused of 8"
    assert "waits for a person's approval" in drawn(first, 160, 20, 0.0).plain
    served.trouble = Trouble("Down", 2, 4.0)
    del served.phases["a"], served.phases["c"], served.awaits["d"]
    second = await anext(following)
    # All of them wait for another attempt, as 'ls' says, too.
    assert second.counts == {"queued": 3, "waiting": 5}
    assert "more" not in drawn(second, 160, 20, 0.0).plain
    await following.aclose()


async def test_a_paused_job_is_told_as_paused_whatever_it_waits_for_beside() -> None:
    """Who paused a job that sleeps looks for it there; one that works ends its turn first."""
    served = Served(
        [BatchNews(open=("a", "b", "c", "d"))],
        phases={"a": Phase.APPROVAL, "b": Phase.ASLEEP, "d": Phase.ASLEEP},
        paused="abc",
    )
    following = watch(MemoryStore(), served, 0.0).pictures()
    told = await anext(following)
    assert told.counts == {"running": 1, "paused": 2, "waiting": 1}
    assert {job.id: job.doing for job in told.slowest}["b"] == (
        "paused by a user: 'holdfast resume' has it go on; sleeps, as its last statement asked for"
    )
    await following.aclose()


async def test_each_end_is_read_once_and_its_failure_grouped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums over ended and open jobs, the rate between two rounds, failures of one kind in one
    place, and the job that runs for longest first.
    """
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    store = MemoryStore()
    end(store, "a", "succeeded")
    failed = JobOutcome(
        key=JobKey(batch="night", job="b"),
        run="r",
        status=JobStatus.FAILED,
        reason="turn 4: Down: port 17",
        turns=4,
    )
    again = BatchEnd(outcome=failed.model_copy(update={"reason": "turn 2: Down: 1"}), again=1)
    states = [
        BatchNews(total=1, open=("c", "d")),
        BatchNews(total=3, first=1, ends=(again, BatchEnd(outcome=failed)), open=("d",)),
    ]
    trouble = Trouble("Down: port 18", 3, 0.0)
    served = Served([*states, None], trouble)
    following = watch(store, served, 0.0, 30.0, 60.0).pictures()
    first = await anext(following)
    assert (first.turns, first.cost_usd, first.turns_a_minute) == (4 + 2 + 2, 0.5, None)
    assert [(job.id, job.seconds) for job in first.slowest] == [("d", 2.0), ("c", 1.0)]
    assert [(error.kind, error.count) for error in first.errors] == [("Down: port <n>", 2)]
    end(store, "c", "budget", "its budget of 4 turns is spent", turns=6)
    end(store, "d", "succeeded")
    second = await anext(following)
    assert second.counts == {"running": 1, "succeeded": 1, "failed": 1}
    assert (second.turns, second.turns_a_minute) == (4 + 4 + 2, (10 - 8) / 0.5)
    assert second.errors[0] == ErrorKind("Down: port <n>", 3, "b", "turn 4: Down: port 17")
    assert second.errors[1] == ErrorKind("Down: <n>", 1, "b", "turn 2: Down: 1")
    last = await anext(following)
    assert last.ended
    assert last.counts == {"succeeded": 2, "failed": 1, "budget": 1}
    assert [error.count for error in last.errors] == [1, 3, 1]
    assert exit_code(last.counts) == 1
    with pytest.raises(StopAsyncIteration):
        await anext(following)


async def test_the_last_picture_is_of_the_newest_runs_and_of_no_sub_job() -> None:
    """A job that was taken back after its batch had told of it has ended as its new run did."""
    store = MemoryStore()
    for id, goal in (("a", {"goal": "g"}), ("b.0123456789", {"goal": "g", "parent": "b"})):
        written = Written(JobArchive(store, "night", id))
        written.archive.write_definition(goal)
        write_run(written, "r", range(1, 2), None, chat(random.Random(0)))
    end(store, "b", "succeeded")
    end(store, "b.0123456789", "failed")
    told = JobOutcome(
        key=JobKey(batch="night", job="a"), run="before", status=JobStatus.SUCCEEDED, turns=4
    )
    end(store, "a", "failed")
    served = Served(
        [BatchNews(open=("a",)), BatchNews(total=1, ends=(BatchEnd(outcome=told),)), None]
    )
    following = watch(store, served, 0.0, 30.0, 60.0).pictures()
    pictures = [picture async for picture in following]
    assert pictures[-2].counts == {"succeeded": 2}
    assert pictures[-1].counts == {"succeeded": 1, "failed": 1}
    assert [error.job for error in pictures[-1].errors] == ["a"]


async def test_a_job_that_is_to_begin_anew_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is queued, whatever it ended as before, also in a page that the batch has not read; then
    it runs. What its run before used is taken back.
    """
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    store = MemoryStore()
    for id in ("a", "b", "c"):
        end(store, id, "failed")
    orders = [{"key": {"batch": "night", "job": id}, "id": order} for id, order in PAGE.items()]
    page = PageRef(digest=write_page(store, orders), jobs=2)
    state = BatchState(waiting=("b",), pages=(page,))
    served = Served([BatchNews(waiting=3), BatchNews(waiting=2, open=("b",))], state=state)
    following = watch(store, served, 0.0, 1.0).pictures()
    first = await anext(following)
    assert (first.counts, first.turns) == ({"queued": 3, "failed": 1}, 4)
    served.state = BatchState(open=("b",), pages=(page,))
    second = await anext(following)
    assert second.counts == {"queued": 2, "running": 1, "failed": 1}
    assert second.turns == 4 + 2
    await following.aclose()


class PagesAway(MemoryStore):
    """A store of which no page can be read at first."""

    away = True

    def get(self, key: str) -> bytes:
        if self.away and key.startswith(FOLDER):
            raise ArchiveError("s3://b cannot be reached")
        return super().get(key)


async def test_a_watch_goes_on_where_pages_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells what the batch says, and that; and reads them once the store is back."""
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    store = PagesAway()
    end(store, "c", "failed")
    orders = [{"key": {"batch": "night", "job": id}, "id": order} for id, order in PAGE.items()]
    page = PageRef(digest=write_page(store, orders), jobs=2)
    served = Served([BatchNews(waiting=2)] * 2, state=BatchState(pages=(page,)))
    following = watch(store, served, 0.0, 1.0).pictures()
    first = await anext(following)
    assert first.counts == {"queued": 2, "failed": 1}
    assert first.silent == "jobs that wait cannot be read: s3://b cannot be reached"
    store.away = False
    second = await anext(following)
    assert (second.counts, second.silent) == ({"queued": 2}, "")
    await following.aclose()


async def test_the_last_picture_knows_of_ends_that_nobody_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch ends with its last job, and tells of that no more: one that had failed before, and
    was begun anew meanwhile; and a sub-job that was open when the watch began.
    """
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    store = MemoryStore()
    end(store, "a", "failed", turns=3)
    below = Written(JobArchive(store, "night", "b.0123456789"))
    below.archive.write_definition({"goal": "g", "parent": "b"})
    write_run(below, "r", range(1, 3), None, chat(random.Random(0)))
    served = Served([BatchNews(open=("b",)), None])
    following = watch(store, served, 0.0, 1.0).pictures()
    first = await anext(following)
    assert (first.counts, first.turns) == ({"running": 1, "failed": 1}, 3 + 2)
    end(store, "a", "succeeded", run="s")
    end(store, "b", "succeeded")
    end(store, "b.0123456789", "succeeded", turns=6)
    last = await anext(following)
    assert (last.counts, last.turns) == ({"succeeded": 2}, 4 + 4 + 6)


async def test_a_batch_that_begins_again_is_followed_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counts its ends from nothing: that it has told fewer than before is no silence."""
    monkeypatch.setattr("runtime.client.batch_watch.POLL_SECONDS", 0.0)
    store = MemoryStore()
    for id, status in (("a", "succeeded"), ("b", "failed")):
        end(store, id, status)
    made = JobOutcome(
        key=JobKey(batch="night", job="b"), run="s", status=JobStatus.SUCCEEDED, turns=3
    )
    rounds = [
        BatchNews(total=2),
        BatchNews(total=0, first=2, open=("b",)),
        BatchNews(total=1, ends=(BatchEnd(outcome=made),), waiting=1),
    ]
    served = Served([*rounds])
    following = watch(store, served, 0.0, 1.0, 2.0).pictures()
    counts = [(await anext(following)).counts for _ in rounds]
    assert counts == [
        {"failed": 1, "succeeded": 1},
        {"running": 1, "succeeded": 1},
        {"queued": 1, "succeeded": 2},
    ]
    assert served.known == [0, 2, 0]
    await following.aclose()


async def test_where_nobody_answers_the_last_picture_stays() -> None:
    """A batch without a worker is no batch that has ended."""
    served = Served([BatchNews(open=("a",)), BatchNews()])
    following = watch(MemoryStore(), served, 0.0).pictures()
    first = await anext(following)
    second = await anext(following)
    assert second.silent == "no worker of the batch answers"
    assert (second.counts, second.ended) == (first.counts, False)
    await following.aclose()


async def test_without_a_server_a_batch_is_seen_as_it_was_left() -> None:
    """The archive's ends, and that others may not have begun; a batch that is nowhere is an
    error.
    """
    store = MemoryStore()
    end(store, "a", "succeeded")
    (picture,) = [one async for one in watch(store, None, 0.0).pictures()]
    assert (picture.counts, exit_code(picture.counts)) == ({"succeeded": 1}, 0)
    assert picture.silent == "no server runs: told is what has begun, as the archive has it"
    with pytest.raises(NotFound):
        await anext(watch(MemoryStore(), None).pictures())


def test_watch_does_not_say_that_it_has_ended_where_nobody_knows(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A ``run`` that was killed may have left jobs that never began, of which no archive has a
    trace.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    end(open_store(str(tmp_path / "archive")), "a", "succeeded")
    assert main(["watch", "night"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("as it was left: night  1 succeeded of 1; $0.5000")
    assert said.err == "no server runs: told is what has begun, as the archive has it\n"


@pytest.mark.parametrize("height", [3, 6, 10, 24])
@pytest.mark.parametrize("width", [30, 100])
def test_the_table_never_has_more_lines_than_the_terminal(width: int, height: int) -> None:
    """With thousands of jobs and many kinds of errors: what counts first."""
    picture = Picture(
        batch="night",
        counts={"queued": 4000, "running": 990, "failed": 10},
        slowest=tuple(
            OpenJob(f"j{number}", 3, "model", 10, 0.1, 60.0, "x = 1") for number in range(20)
        ),
        errors=tuple(ErrorKind(f"E{number}", 7, "j1", "e") for number in range(20)),
    )
    lines = drawn(picture, width, height, 61.0).plain.split("\n")
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith("night  4,000 queued, 990 r")
    if height == 24:
        assert "newest errors" in lines
        shown = sum(line.startswith("j") for line in lines)
        assert f"… and {990 - shown} more" in lines


@pytest.mark.parametrize(
    ("counts", "code"),
    [({"succeeded": 2}, 0), ({"succeeded": 2, "budget": 1}, 3), ({"budget": 1, "failed": 1}, 1)],
)
def test_the_exit_code_tells_how_it_ended(counts: dict[str, int], code: int) -> None:
    """As that of ``run`` does."""
    assert exit_code(Picture("night", counts=counts).counts) == code


def test_of_several_runs_the_worst_code_counts() -> None:
    """A failure is worse than a budget, as with jobs, and a difference is worse than both."""
    assert worst([3, 0, 1]) == exit_code(["budget", "succeeded", "failed"]) == 1
    assert (worst([1, 4, 3]), worst([3, 0]), worst([0, 0]), worst([])) == (4, 3, 0, 0)
