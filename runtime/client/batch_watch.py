"""Watching a batch of any size: its workflow tells how many jobs stand how, the archive how those
that ended came out, and of the open ones so many are asked in a round as one screen can show.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from temporalio.service import RPCError

from runtime.archive.catalog import all_jobs
from runtime.archive.job import JobArchive
from runtime.archive.pages import readable_pages
from runtime.archive.reading import read_ahead
from runtime.archive.standings import ArchivedStanding, standing_of
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ArchiveError, NotFound
from runtime.base.kinds_of_error import kind_of_error
from runtime.base.standings import DAMAGED, OPEN, PAUSED, QUEUED, RUNNING, WAITING
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.lost import WHY_LOST
from runtime.client.standing import Standing
from runtime.client.statuses import held_up, now_of
from runtime.job.stops import JobStatus
from runtime.server.away import is_passing
from workflows.messages import NEW_ORDER, BatchEnd, BatchNews

ASKED = 16
"""Open jobs that are asked in a round, in turns where there are more."""

POLL_SECONDS = 1.0
NO_SERVER = "no server runs: told is what has begun, as the archive has it"
SOME_LOST = (
    f"Temporal does not know of the open jobs: {WHY_LOST}"
    " ('holdfast run' of its file says how to go on)"
)

WINDOW_SECONDS = 60.0
"""Seconds over which a rate is taken."""

SHOWN = 20
"""Jobs and errors that a picture has at most."""


@dataclass(frozen=True)
class OpenJob:
    """A job that runs: what it does, and for how many ``seconds`` its run has."""

    id: str
    turn: int
    phase: str
    tokens: int
    cost_usd: float
    seconds: float
    doing: str


@dataclass(frozen=True)
class ErrorKind:
    """Errors of one kind: of jobs that ended with it, and of attempts that are made again."""

    kind: str
    count: int
    job: str
    error: str


@dataclass(frozen=True)
class Picture:
    """How a batch stands.

    ``counts`` are jobs by status: an open one runs until it is asked and says that it waits, or is
    paused. ``slowest`` are the jobs that have run for longest, of those that were asked; ``errors``
    have the newest first. ``turns_a_minute`` and ``tokens_a_minute`` are of the last minute, None
    in the first seconds. ``silent``: why nobody answered in this round, or which jobs could not be
    read; of the last picture, that no server was there to say whether there are more jobs, or that
    it has lost some.
    """

    batch: str
    counts: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    turns_a_minute: float | None = None
    tokens_a_minute: float | None = None
    slowest: tuple[OpenJob, ...] = ()
    errors: tuple[ErrorKind, ...] = ()
    ended: bool = False
    silent: str = ""

    @property
    def jobs(self) -> int:
        """All of them."""
        return sum(self.counts.values())


@dataclass
class _Rate:
    """How fast sums grow."""

    seen: deque[tuple[float, int, int]] = field(default_factory=deque)

    def add(self, now: float, turns: int, tokens: int) -> tuple[float, float] | None:
        """Both a minute, over the last ones; None before there are five seconds of them."""
        self.seen.append((now, turns, tokens))
        while self.seen[0][0] < now - WINDOW_SECONDS:
            self.seen.popleft()
        first = self.seen[0]
        if now - first[0] < WINDOW_SECONDS / 12:
            return None
        minutes = (now - first[0]) / 60
        # A job that is begun anew takes its turns back.
        return max(turns - first[1], 0) / minutes, max(tokens - first[2], 0) / minutes


class BatchWatch:
    """Follows a batch; without a ``control``, where no server is up, it is seen as it was left.

    ``clock`` gives seconds, ``now`` the time of day.
    """

    def __init__(
        self,
        store: ObjectStore,
        control: Control | None,
        batch: str,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._control = control
        self._batch = batch
        self._clock, self._now = clock, now
        self._ended: dict[str, ArchivedStanding] = {}
        self._told: set[str] = set()
        """Those of them that had ended while the batch ran, and were not looked up since."""
        self._anew: dict[str, list[str]] = {}
        """The jobs that begin anew by a page, by its digest: each is read once."""
        self._no_pages = ""
        """Why some of the pages could not be read in this round: those jobs count as they ended."""
        self._open: dict[str, tuple[Standing, float]] = {}
        self._turn_of: deque[str] = deque()
        self._errors: dict[str, ErrorKind] = {}
        self._failing: dict[str, tuple[int, str]] = {}
        self._rate = _Rate()
        self._known, self._first = 0, True
        self._last: Picture | None = None

    async def pictures(self) -> AsyncGenerator[Picture]:
        """A picture a round; the last one is that of the batch's end.

        Raises:
            NotFound: if there is no such batch.
        """
        while True:
            picture = await self._round()
            yield picture
            if picture.ended:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _round(self) -> Picture:
        if (control := self._control) is None:
            return replace(await self._final(None), silent=NO_SERVER)
        try:
            news = await self._news(control)
            # Empty news are what a batch without a worker is given.
            if news == BatchNews():
                return self._unanswered("no worker of the batch answers")
            if news is None:
                picture = await self._final(control)
                lost = picture.ended and OPEN in picture.counts
                return replace(picture, silent=SOME_LOST) if lost else picture
            await self._ask(control, news.open)
        except RPCError as error:
            if not is_passing(error):
                raise
            return self._unanswered(f"the Temporal server does not answer: {error.message}")
        now = [now_of(standing)[0] for standing, _ in self._open.values()]
        held = [status for status in now if status in {WAITING, PAUSED}]
        counts = {QUEUED: news.waiting, RUNNING: len(news.open) - len(held)}
        for status in held:
            counts[status] = counts.get(status, 0) + 1
        for standing in self._ended.values():
            if standing.status != OPEN and not standing.parent:
                counts[standing.status] = counts.get(standing.status, 0) + 1
        return replace(self._picture(counts, ended=False), silent=self._no_pages)

    async def _news(self, control: Control) -> BatchNews | None:
        """What the batch says, after all ends that it tells of are taken in; those that it does not
        tell any more are read from the archive.
        """
        news = await self._with_ends(control)
        self._no_pages = ""
        if news is not None and news != BatchNews():
            # One that is begun anew, or is to be, is counted as that, whatever is known of its end.
            for id in (*news.open, *await self._waiting_anew(control, news)):
                self._ended.pop(id, None)
        return news

    async def _with_ends(self, control: Control) -> BatchNews | None:
        news = await control.batch_news(self._batch, self._known)
        if news is None or news == BatchNews():
            return news
        # A batch that has ended, and begins again, counts its ends anew.
        if self._first or news.first > self._known or news.total < self._known:
            names = await asyncio.to_thread(all_jobs, self._store, self._batch)
            known = {*self._ended, *news.open}
            read = [name.job for name in names if name.job not in known]
            await self._read(read)
            # A sub-job, or one that has begun meanwhile, of whose end nobody may tell.
            for id in [id for id in read if self._ended[id].status == OPEN]:
                del self._ended[id]
            self._told |= self._ended.keys()
            self._first, self._known = False, news.total
            return news
        while news.ends:
            self._take(news.ends)
            self._known += len(news.ends)
            if self._known >= news.total:
                break
            more = await control.batch_news(self._batch, self._known)
            if more is None or more == BatchNews():
                break
            news = more
        return news

    async def _waiting_anew(self, control: Control, news: BatchNews) -> set[str]:
        """The jobs of which an end is known, and that wait for their places to begin anew. They are
        asked for only where there may be some.
        """
        ended = {id for id, one in self._ended.items() if one.status != JobStatus.SUCCEEDED}
        if not news.waiting or not ended:
            return set()
        state = await control.batch_state(self._batch)
        if state is None:
            return set()
        pages = [page.digest for page in state.pages]
        unread = [digest for digest in pages if digest not in self._anew]
        try:
            self._anew |= await asyncio.to_thread(_begun_anew, self._store, unread)
        # Most of what there is to tell the batch says itself.
        except ArchiveError as error:
            self._no_pages = f"jobs that wait cannot be read: {error}"
        paged = [name for digest in pages for name in self._anew.get(digest, ())]
        # One that has got its place since the batch told how many wait is open by now.
        return ended.intersection((*state.waiting, *state.open, *paged))

    def _take(self, ends: tuple[BatchEnd, ...]) -> None:
        """Take in how runs of jobs have ended; those that are started again count as errors."""
        for end in ends:
            outcome = end.outcome
            if not end.again:
                self._told.add(outcome.key.job)
                self._ended[outcome.key.job] = ArchivedStanding(
                    key=outcome.key,
                    run=outcome.run,
                    status=outcome.status.value,
                    reason=outcome.reason,
                    turns=outcome.turns,
                    tokens=outcome.usage.total,
                    cost_usd=outcome.cost_usd,
                )
            self._failing.pop(outcome.key.job, None)
            if outcome.status is not JobStatus.SUCCEEDED:
                self._erred(outcome.key.job, outcome.reason or outcome.status.value)

    async def _final(self, control: Control | None) -> Picture:
        """The batch's workflow has ended: all that the archive has of it."""
        names = await asyncio.to_thread(all_jobs, self._store, self._batch)
        if not names:
            raise NotFound(
                f"no job of a batch {self._batch!r} has begun: 'holdfast ls' lists the jobs of all"
            )
        await self._read(await asyncio.to_thread(self._unread, [name.job for name in names]))
        counts: dict[str, int] = {}
        going: list[str] = []
        for id, standing in self._ended.items():
            status = await _status(control, standing)
            if status == JobStatus.RUNNING:
                going.append(id)
            # A sub-job's end is its parent's concern, as it is to ``run``.
            if not standing.parent:
                counts[status] = counts.get(status, 0) + 1
        for id in going:
            # It was given to another workflow, as a reset is: it is looked at again.
            del self._ended[id]
        self._open.clear()
        return self._picture(counts, ended=not going)

    def _unread(self, ids: list[str]) -> list[str]:
        """The jobs of which nothing was told or read, and those that have had another run since:
        one that was begun anew may have ended with the batch, which then tells nobody, and one that
        is taken back after its end is not the batch's any more.
        """
        told, self._told = [id for id in ids if id in self._told & self._ended.keys()], set()

        def has_another(id: str) -> bool:
            newest = JobArchive(self._store, self._batch, id).runs()[-1:]
            return bool(newest) and newest != [self._ended[id].run]

        others = {
            id for id, other in zip(told, read_ahead(told, has_another), strict=True) if other
        }
        return [id for id in ids if id not in self._ended or id in others]

    async def _read(self, ids: list[str]) -> None:
        """Read the ends of jobs, each once."""

        def read(id: str) -> ArchivedStanding:
            return standing_of(JobArchive(self._store, self._batch, id))

        standings = await asyncio.to_thread(lambda: list(read_ahead(ids, read)))
        for id, standing in zip(ids, standings, strict=True):
            self._ended[id] = standing
            self._failing.pop(id, None)
            # A sub-job is not counted: its end is its parent's concern.
            fine = {OPEN, DAMAGED, JobStatus.SUCCEEDED.value}
            if standing.status not in fine and not standing.parent:
                self._erred(id, standing.reason or standing.status)

    async def _ask(self, control: Control, open: tuple[str, ...]) -> None:
        """Ask some of the open jobs what they do."""
        still = {*open}
        self._open = {id: known for id, known in self._open.items() if id in still}
        known = {*self._turn_of}
        self._turn_of = deque(id for id in self._turn_of if id in still)
        # Jobs that are new come first, then those that were asked the longest ago.
        self._turn_of.extendleft(reversed([id for id in open if id not in known]))
        asked = [self._turn_of.popleft() for _ in range(min(ASKED, len(self._turn_of)))]
        self._turn_of.extend(asked)
        keys = [JobKey(batch=self._batch, job=id) for id in asked]
        standings = await asyncio.gather(*map(control.standing, keys))
        for id, standing in zip(asked, standings, strict=True):
            if standing is None or standing.outcome is not None:
                continue
            since = standing.since or self._now()
            self._open[id] = standing, (self._now() - since).total_seconds()
            trouble = standing.trouble
            # An attempt that is seen in several rounds is one error.
            if trouble is None:
                continue
            # What holds a reply up is told in other words each time that it is tried.
            failing = trouble.attempt, "held" if trouble.held else trouble.error
            if self._failing.get(id) != failing:
                self._failing[id] = failing
                self._erred(id, trouble.error)

    def _erred(self, id: str, error: str) -> None:
        kind = kind_of_error(error, f"{self._batch}/{id}", id)
        count = self._errors.pop(kind).count if kind in self._errors else 0
        # The newest are last.
        self._errors[kind] = ErrorKind(kind, count + 1, id, error)

    def _picture(self, counts: dict[str, int], *, ended: bool) -> Picture:
        done = self._ended.values()
        going = [standing.progress for standing, _ in self._open.values() if standing.progress]
        turns = sum(one.turns for one in done) + sum(one.turn for one in going)
        tokens = sum(one.tokens for one in done) + sum(one.usage.total for one in going)
        cost = sum(one.cost_usd for one in done) + sum(one.cost_usd for one in going)
        rate = self._rate.add(self._clock(), turns, tokens)
        slowest = sorted(self._open.items(), key=lambda item: (-item[1][1], item[0]))
        self._last = Picture(
            batch=self._batch,
            counts={status: count for status, count in counts.items() if count},
            turns=turns,
            tokens=tokens,
            cost_usd=round(cost, 9),
            turns_a_minute=None if rate is None else round(rate[0], 1),
            tokens_a_minute=None if rate is None else round(rate[1], 1),
            slowest=tuple(_open_job(id, *known) for id, known in slowest[:SHOWN]),
            errors=tuple(reversed(self._errors.values()))[:SHOWN],
            ended=ended,
        )
        return self._last

    def _unanswered(self, why: str) -> Picture:
        """The last picture, and that this round has no other."""
        return replace(self._last or Picture(self._batch), silent=why)


def _begun_anew(store: ObjectStore, pages: Sequence[str]) -> dict[str, list[str]]:
    """The jobs of pages that have ended before, and begin anew by them, by the pages' digests; none
    of a page that cannot be read.
    """
    return {page: [] for page in pages} | {
        page: [order["key"]["job"] for order in orders if order["id"] != NEW_ORDER]
        for page, orders in readable_pages(store, pages)
    }


async def _status(control: Control | None, archived: ArchivedStanding) -> str:
    """How a job stands whose batch has ended."""
    if archived.status != OPEN or control is None:
        return archived.status
    standing = await control.standing(archived.key)
    if standing is None:
        return OPEN
    return standing.outcome.status if standing.outcome is not None else JobStatus.RUNNING


def _open_job(id: str, standing: Standing, seconds: float) -> OpenJob:
    seen = standing.progress
    doing = seen.statement if seen is not None else ""
    if (held := held_up(standing)) is not None:
        _, doing = held
    if standing.running is not None:
        doing = f"runs: {standing.running.command}"
    if standing.trouble is not None:
        doing = str(standing.trouble)
    return OpenJob(
        id=id,
        turn=seen.turn if seen is not None else 0,
        phase=seen.phase.value if seen is not None else "",
        tokens=seen.usage.total if seen is not None else 0,
        cost_usd=seen.cost_usd if seen is not None else 0.0,
        # The server's clock may be ahead of ours.
        seconds=round(max(seconds, 0.0), 1),
        doing=doing,
    )
