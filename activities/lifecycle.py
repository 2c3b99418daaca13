"""The begin of a job in the archive."""

from __future__ import annotations

import asyncio

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.build import this_build
from activities.contracts import JobBegan, JobBegin
from activities.prices import Price, prices_of
from activities.searchable import has_attributes
from runtime.archive.job import JobArchive
from runtime.archive.replays import claim_replay
from runtime.archive.stores import ObjectStore
from runtime.base.failpoints import failpoint
from runtime.job.checkpoint import INTERPRETER


class LifecycleActivities:
    """The activity ``begin_job``."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._searchable: bool | None = None

    @activity.defn(name="begin_job")
    async def begin_job(self, begin: JobBegin) -> JobBegan:
        """Archive the job's definition, unless it is the one archived last, and claim the order of
        a fork for its run.

        Returns what the worker knows of such a job.

        Raises:
            ApplicationError: type ``OrderTaken``, if the order was given to another run before:
                whoever can read a history has it, and would spend its budget once more.
        """
        failpoint("begin.before")
        archive = JobArchive.of(self._store, begin.key)
        first = await asyncio.to_thread(
            archive.write_definition, begin.definition, order=begin.order, run=begin.first_run
        )
        if not first:
            raise ApplicationError(
                "another run has had this order, which is for one alone: somebody has given it a"
                " second time",
                type="OrderTaken",
                non_retryable=True,
            )
        # Also the claim stands before the first turn: the run's start names it.
        if begin.fork is not None:
            await asyncio.to_thread(
                claim_replay, archive, begin.fork, activity.info().workflow_run_id or ""
            )
        model = begin.definition["model"]
        own = (model.get("options") or {}).get("price")
        price = Price.model_validate(own) if own is not None else None
        prices = await asyncio.to_thread(prices_of, str(model["name"]), price)
        failpoint("begin.after")
        if self._searchable is None:
            # Once it has said: for each job that begins it would be a call of the server.
            self._searchable = await has_attributes(activity.client())
        build = this_build()
        return JobBegan(
            interpreter=INTERPRETER,
            prices=prices,
            build=build.id,
            replay_version=build.replay_version,
            searchable=bool(self._searchable),
        )
