"""The pages of a batch: which are left, and the jobs of the next one.

A page is read when there is a place for its first job, so a batch has the jobs of one page in
memory, however many pages there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.batch_contracts import PageJobs, PageOrder, PageRef
    from runtime.base.plurals import counted
    from workflows.calling import result_of
    from workflows.messages import BatchCarried, JobOrder, PageSplit
    from workflows.patches import patched


GIVEN_AGAIN = "withdrawn-given-again"
"""The patch by which a job that was withdrawn from a page runs if it is given again."""


class Pages:
    """The pages of ``batch`` that are left, the next one first; and those whose jobs nobody wants
    any more, which are to end as cancelled.
    """

    def __init__(self, batch: str, carried: BatchCarried) -> None:
        self._batch = batch
        self.left = deque(carried.pages)
        self.unwanted = deque(carried.unwanted)
        self.gone = dict(carried.gone)
        """The jobs that were withdrawn from them by name, with the ids of their orders; empty while
        that is not known.
        """
        self.lost = dict(carried.lost)
        """The pages that cannot be read, by their digests, and what is wrong with each."""
        self._calls = 0

    def __bool__(self) -> bool:
        return bool(self.left or self.unwanted)

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run of the batch needs, as fields of ``BatchCarried``."""
        return {
            "pages": tuple(self.left),
            "gone": self.gone if self else {},
            "unwanted": tuple(self.unwanted),
            "lost": self.lost,
        }

    @property
    def jobs(self) -> int:
        """How many jobs are in the pages."""
        return sum(page.jobs for page in (*self.left, *self.unwanted))

    def add(self, pages: Iterable[PageRef]) -> None:
        """Put pages before those that are left: what was submitted last says how a job is defined
        that is in both, and the other one is passed over. Those that are there already stay.
        """
        known = {page.digest for page in self.left}
        for page in reversed([page for page in pages if page.digest not in known]):
            self.lost.pop(page.digest, None)
            self.left.appendleft(page)

    def withdraw_all(self) -> None:
        """Have nobody want any of their jobs."""
        self.unwanted.extend(self.left)
        self.left.clear()

    def split(self, splits: Iterable[PageSplit]) -> None:
        """Part the jobs that nobody wants from the others of their pages.

        Those of a page that was read meanwhile are withdrawn wherever they are by now.
        """
        known = {page.digest for page in self.unwanted}
        for split in splits:
            rest = [split.rest] if split.rest is not None else []
            self.left = deque(
                part
                for page in self.left
                for part in (rest if page.digest == split.page else [page])
            )
            if split.unwanted.digest not in known:
                self.unwanted.append(split.unwanted)

    async def next(self) -> list[JobOrder]:
        """The jobs of the next page that have not begun. The page is left until they are here."""
        page = self.left[0]
        jobs, _ = await self._page(page, "the next jobs")
        # Its jobs may have been withdrawn meanwhile.
        if page not in self.left:
            return []
        # A submission may have put others before it meanwhile.
        self.left.remove(page)
        return [job for job in jobs if not self._is_gone(job)]

    async def next_unwanted(self) -> tuple[list[JobOrder], tuple[str, ...]]:
        """The jobs of the next page that nobody wants: those that have not begun, and the names of
        the others.
        """
        jobs, begun = await self._page(self.unwanted[0], "the next jobs to cancel")
        self.unwanted.popleft()
        return [job for job in jobs if not self._is_gone(job)], begun

    async def withdrawn(self, name: str) -> JobOrder | None:
        """The job of that name, which is none of the next ones any more; None if there is none."""
        order = PageOrder(batch=self._batch, pages=tuple(self.left), job=name)
        # Before the wait: the page may be read meanwhile by the loop.
        self.gone[name] = ""
        try:
            jobs, _ = await self._ask(order, f"the job {name}")
        except ActivityError as error:
            # It is told of the page when that is its turn.
            if is_cancelled_exception(error):
                raise
            jobs = []
        if jobs:
            self.gone[name] = jobs[0].id
        elif patched(GIVEN_AGAIN):
            self.gone.pop(name, None)
        return next(iter(jobs), None)

    def _is_gone(self, job: JobOrder) -> bool:
        """Whether a job was withdrawn, and not given again since then: that is another order."""
        order = self.gone.get(job.key.job)
        if order is None:
            return False
        if order in {"", job.id} or not patched(GIVEN_AGAIN):
            return True
        del self.gone[job.key.job]
        return False

    async def _page(self, page: PageRef, what: str) -> tuple[list[JobOrder], tuple[str, ...]]:
        """The jobs of one page; none if it cannot be read, which is kept to be told."""
        try:
            return await self._ask(PageOrder(batch=self._batch, pages=(page,)), what)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            cause = error.cause
            why = cause.message if isinstance(cause, ApplicationError) else str(cause)
            self.lost[page.digest] = f"{counted(page.jobs, 'job')} of a page cannot be read: {why}"
            return [], ()

    async def _ask(self, order: PageOrder, what: str) -> tuple[list[JobOrder], tuple[str, ...]]:
        self._calls += 1
        page: PageJobs = await result_of(
            "read_batch_page", order, PageJobs, id=f"page-{self._calls}", summary=what
        )
        return [JobOrder.model_validate(one) for one in page.orders], page.begun
