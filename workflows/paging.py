"""The pages of a batch: which are left, and the jobs of the next one.

A page is read when there is a place for its first job, so a batch has the jobs of one page in
memory, however many pages there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.batch_contracts import PageJobs, PageOrder, PageRef
    from workflows.calling import result_of
    from workflows.messages import JobOrder


class Pages:
    """The pages of ``batch`` that are left, the next one first."""

    def __init__(self, batch: str, left: Iterable[PageRef], gone: Iterable[str]) -> None:
        self._batch = batch
        self.left = deque(left)
        self.gone = set(gone)
        """Jobs in them that nobody wants any more."""
        self._calls = 0

    @property
    def jobs(self) -> int:
        """How many jobs are in the pages that are left."""
        return sum(page.jobs for page in self.left)

    def add(self, pages: Iterable[PageRef]) -> None:
        """Put pages before those that are left: what was submitted last says how a job is defined
        that is in both, and the other one is passed over. Those that are there already stay.
        """
        known = {page.digest for page in self.left}
        for page in reversed([page for page in pages if page.digest not in known]):
            self.left.appendleft(page)

    async def next(self) -> list[JobOrder]:
        """The jobs of the next page that have not begun. The page is left until they are here."""
        page = self.left[0]
        jobs = await self._ask(PageOrder(batch=self._batch, pages=(page,)), "the next jobs")
        # A submission may have put others before it meanwhile.
        self.left.remove(page)
        return [job for job in jobs if job.key.job not in self.gone]

    async def withdrawn(self, name: str) -> JobOrder | None:
        """The job of that name, which is none of the next ones any more; None if there is none."""
        order = PageOrder(batch=self._batch, pages=tuple(self.left), job=name)
        # Before the wait: the page may be read meanwhile by the loop.
        self.gone.add(name)
        return next(iter(await self._ask(order, f"the job {name}")), None)

    async def _ask(self, order: PageOrder, what: str) -> list[JobOrder]:
        self._calls += 1
        page: PageJobs = await result_of(
            "read_batch_page", order, PageJobs, id=f"page-{self._calls}", summary=what
        )
        return [JobOrder.model_validate(one) for one in page.orders]
