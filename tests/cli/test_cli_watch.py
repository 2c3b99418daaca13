"""Following a batch costs by what happens in it, not by how many jobs it has."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any, cast

import pytest
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.spec.models import BatchSpec, Retry
from runtime.base.values import JobKey
from runtime.cli.reporters import PlainReporter
from runtime.client import moves, watch
from runtime.client.control import Control
from runtime.client.moves import MOST_ASKED, Moves, Turn, moves_of
from runtime.client.plans import JobPlan, Plan, Start
from runtime.client.standing import Standing, Trouble
from runtime.client.watch import Ended, Silent, Watch
from runtime.job.phases import Phase
from runtime.job.stops import Cause, JobStatus
from workflows.messages import BatchEnd, BatchNews, JobOutcome, JobProgress

JOBS = 50
ROUNDS = 130


class Asleep:
    """A server on which all jobs of a batch sleep, until they end in round ``ROUNDS``."""

    def __init__(self, *, batch_tells: bool) -> None:
        self.rounds = 0
        self.asked: Counter[str] = Counter()
        self.batch_tells = batch_tells

    @property
    def over(self) -> bool:
        """Whether the jobs have ended."""
        return self.rounds >= ROUNDS

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """One more round begins."""
        self.rounds += 1
        if not self.batch_tells:
            return None
        names = tuple(f"job-{n}" for n in range(JOBS))
        if not self.over:
            return BatchNews(open=names)
        ended = tuple(
            BatchEnd(
                outcome=JobOutcome(
                    key=JobKey(batch=batch, job=name), run="run", status=JobStatus.SUCCEEDED
                )
            )
            for name in names
        )
        return BatchNews(total=JOBS, ends=ended)

    async def batch_end(self, batch: str) -> None:
        """Tells of no end by itself."""
        await asyncio.Event().wait()

    async def standing(self, key: JobKey) -> Standing:
        """The job's own answer."""
        self.asked[key.job] += 1
        if self.over:
            return Standing("run", outcome=JobOutcome(key=key, status=JobStatus.SUCCEEDED))
        progress = JobProgress(status=JobStatus.RUNNING, turn=3, phase=Phase.ASLEEP)
        return Standing("run", progress=progress)


def watched(server: Asleep, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All that is seen of the batch until its end."""
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    ids = tuple(f"job-{n}" for n in range(JOBS))

    async def all_of_it() -> list[Any]:
        plan = Plan(BatchSpec(batch="nightly", jobs=()), ids)
        return [event async for event in Watch(cast(Control, server), plan).events()]

    return asyncio.run(all_of_it())


def test_jobs_that_sleep_are_seldom_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is their batch, which says when they have ended: that is seen in the same round."""
    server = Asleep(batch_tells=True)
    events = watched(server, monkeypatch)
    assert [type(event) for event in events] == [Turn] * JOBS + [Ended] * JOBS
    # The batch in rounds 1, 2, 4, 8, 13 and each fifth after that.
    assert server.rounds == ROUNDS
    # They in rounds 1, 2, 4, 8, 13, 23, 43, and each 25th after that up to 618.
    assert set(server.asked.values()) == {7 + (618 - 43) // 25}


def test_jobs_of_which_no_batch_tells_are_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was reset runs on when its batch has ended."""
    server = Asleep(batch_tells=False)
    events = watched(server, monkeypatch)
    assert [type(event) for event in events] == [Turn] * JOBS + [Ended] * JOBS
    assert set(server.asked.values()) == {ROUNDS}


class Known:
    """A server whose batch tells of run ``told`` of its one job, which has come to run ``new``;
    ``silent``: not the first time that it is asked.
    """

    def __init__(self, told: str, status: JobStatus, *, silent: bool) -> None:
        self.silent = silent
        self.told = self.outcome(told, JobStatus.SUCCEEDED if told == "old" else status)
        self.states = [
            Standing(
                "new", progress=JobProgress(status=JobStatus.RUNNING, turn=3, phase=Phase.MODEL)
            ),
            Standing("new", outcome=self.outcome("new", status)),
        ]

    def outcome(self, run: str, status: JobStatus) -> JobOutcome:
        """How a run ended."""
        return JobOutcome(
            key=JobKey(batch="nightly", job="job-0"), run=run, status=status, cause=Cause.ERROR
        )

    async def batch_news(self, batch: str, known: int) -> BatchNews:
        """The same one end, to who does not know it."""
        if self.silent:
            self.silent = False
            return BatchNews()
        return BatchNews(total=1, first=known, ends=(BatchEnd(outcome=self.told),)[known:])

    async def batch_end(self, batch: str) -> None:
        """Tells of no end by itself."""
        await asyncio.Event().wait()

    async def standing(self, key: JobKey) -> Standing:
        """The job's own answer: it runs first, and then has ended."""
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
@pytest.mark.parametrize("start", [Start.RESUMED, Start.RERUN])
@pytest.mark.parametrize(
    ("told", "status"), [("old", JobStatus.SUCCEEDED), ("new", JobStatus.FAILED)]
)
def test_what_a_batch_tells_of_a_run_before_is_no_end(
    start: Start, told: str, status: JobStatus, silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was taken back runs on in another run; one that may be tried again has ended where
    its batch has said that it is not.
    """
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    plan = Plan(
        BatchSpec(batch="nightly", jobs=()),
        ("job-0",),
        {"job-0": JobPlan("job-0", start)},
        {"job-0": Retry(times=2)},
    )

    async def all_of_it() -> list[Any]:
        following = Watch(cast(Control, Known(told, status, silent=silent)), plan)
        return [event async for event in following.events()]

    began, ended = asyncio.run(asyncio.wait_for(all_of_it(), 20))
    assert isinstance(began, Turn)
    assert (ended.outcome.run, ended.outcome.status) == ("new", status)


class Leaving:
    """A server whose batch tells of the end of the one job, and that is away as the other is
    asked.
    """

    def __init__(self) -> None:
        self.away = True

    async def batch_news(self, batch: str, known: int) -> BatchNews:
        """One has ended, the other runs."""
        outcome = JobOutcome(key=JobKey(batch=batch, job="a"), run="r", status=JobStatus.FAILED)
        return BatchNews(
            total=1, first=known, ends=(BatchEnd(outcome=outcome),)[known:], open=("b",)
        )

    async def batch_end(self, batch: str) -> None:
        """Tells of no end by itself."""
        await asyncio.Event().wait()

    async def standing(self, key: JobKey) -> Standing:
        """Nothing, the first time."""
        if self.away:
            self.away = False
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
        return Standing("r", outcome=JobOutcome(key=key, run="r", status=JobStatus.SUCCEEDED))


def test_what_was_told_before_the_server_went_away_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch does not tell it again."""
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    plan = Plan(BatchSpec(batch="nightly", jobs=()), ("a", "b"))

    async def all_of_it() -> list[Any]:
        return [event async for event in Watch(cast(Control, Leaving()), plan).events()]

    first, silent, last = asyncio.run(asyncio.wait_for(all_of_it(), 20))
    assert (first.outcome.key.job, first.outcome.status) == ("a", JobStatus.FAILED)
    assert isinstance(silent, Silent)
    assert (last.outcome.key.job, last.outcome.status) == ("b", JobStatus.SUCCEEDED)


class Thousands:
    """A batch of which so many jobs run, so many wait, and some end in each round."""

    def __init__(self, jobs: int, at_once: int) -> None:
        self.names = [f"job-{n}" for n in range(jobs)]
        self.at_once = at_once
        self.ended = 0
        self.answers: list[int] = []
        self.asked: list[int] = []

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """Ten more have ended; at most ten are told at once."""
        self.asked.append(0)
        self.ended = min(self.ended + 10, len(self.names))
        told = self.names[known : self.ended][:10]
        ends = tuple(
            BatchEnd(
                outcome=JobOutcome(
                    key=JobKey(batch=batch, job=name), run="r", status=JobStatus.SUCCEEDED
                )
            )
            for name in told
        )
        runs = tuple(self.names[self.ended : self.ended + self.at_once])
        self.answers.append(len(ends) + len(runs))
        return BatchNews(total=self.ended, first=known, ends=ends, open=runs)

    async def batch_end(self, batch: str) -> None:
        """Tells of no end by itself."""
        await asyncio.Event().wait()

    async def standing(self, key: JobKey) -> Standing:
        """One more job is asked in this round."""
        self.asked[-1] += 1
        progress = JobProgress(status=JobStatus.RUNNING, turn=1, phase=Phase.MODEL)
        return Standing("r", progress=progress)


@pytest.mark.slow
def test_a_round_does_not_cost_by_the_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five thousand jobs those are asked that run, a bounded number in each round, and the batch
    tells of the rest.
    """
    server = Thousands(5_000, at_once=300)
    monkeypatch.setattr(sys.modules[__name__], "JOBS", 5_000)
    events = watched(cast(Asleep, server), monkeypatch)
    assert sum(isinstance(event, Ended) for event in events) == 5_000
    assert len(server.answers) == 500
    assert max(server.asked) == MOST_ASKED
    assert max(server.answers) == 310


def test_what_is_kept_of_jobs_does_not_grow_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many have ended, ``run`` keeps notes on those alone that may be open."""
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    server, at_once = Thousands(400, at_once=30), 30

    async def most() -> int:
        following = Watch(
            cast(Control, server), Plan(BatchSpec(batch="many", jobs=()), tuple(server.names))
        )
        reporter, kept = PlainReporter(), 0
        async for event in following.events():
            reporter.turn(event) if isinstance(event, Turn) else reporter.ended(event.outcome)
            heard = following._moves
            notes = heard._seen, heard._pauses, following._doubtful, reporter._told
            kept = max(kept, *map(len, notes))
        return kept

    # Those that run now and the ten that are told of next.
    assert at_once <= asyncio.run(most()) <= at_once + 20


def test_more_jobs_than_one_round_asks_wait_for_the_next_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who was due and not asked is asked first, and begins no pause."""
    monkeypatch.setattr(moves, "POLL_SECONDS", 0)
    keys = [JobKey(batch="night", job=f"job-{n}") for n in range(MOST_ASKED + 1)]
    server = Asleep(batch_tells=True)

    async def told() -> list[Turn]:
        turns = moves_of(cast(Control, server), keys)
        return [await anext(turns) for _ in keys]

    assert [turn.key for turn in asyncio.run(told())] == keys
    assert server.asked.total() <= 2 * MOST_ASKED


def test_a_line_says_what_a_job_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Each time that it begins to, also twice in one turn: nothing else may come for hours."""
    reporter, key = PlainReporter(), JobKey(batch="night", job="a")
    phases = [Phase.MODEL, Phase.EXECUTING]
    phases += [Phase.APPROVAL, Phase.APPROVAL, Phase.EXECUTING, Phase.APPROVAL, Phase.PAUSED]
    for phase in phases:
        progress = JobProgress(status=JobStatus.RUNNING, turn=2, phase=phase, statement="order(5)")
        reporter.turn(Turn(key, progress))
    counts = "night/a  turn 2  0 tokens  $0.0000  "
    asks = f"{counts}waits for a person's approval: 'holdfast approvals' lists the calls"
    paused = f"{counts}paused by a user: 'holdfast resume' has it go on"
    assert capsys.readouterr().out.splitlines() == [f"{counts}order(5)", asks, asks, paused]


def test_a_line_says_once_that_a_reply_waits_to_be_archived(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In whatever words each try to write it is refused; a failed attempt before is another
    matter.
    """
    reporter, moves, key = PlainReporter(), Moves(), JobKey(batch="night", job="a")
    progress = JobProgress(status=JobStatus.RUNNING, turn=2, phase=Phase.MODEL, statement="x = 1")
    failed = Trouble("ConnectionFailed: no", 2, 0.0)
    held = [Trouble(f"the reply waits to be archived: {word}", 2, 0.0, True) for word in "ab"]
    for trouble in (None, failed, *held, None):
        standing = Standing("r", progress=progress, trouble=trouble)
        if (turn := moves.turn("a", key, standing)) is not None:
            reporter.turn(turn)
    counts = "night/a  turn 2  0 tokens  $0.0000  "
    assert capsys.readouterr().out.splitlines() == [
        f"{counts}x = 1",
        f"{counts}attempt 2, after ConnectionFailed: no",
        f"{counts}the reply waits to be archived: a",
    ]
