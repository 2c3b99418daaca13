"""What a model call spent that was cut by a cancel or a deadline, for the job to book."""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities._failed_attempts import spent_on_call
from activities._options import ModelOptions
from activities._under_way import break_off
from activities.contracts import CutCall
from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.values import Failed


class CutCallActivities:
    """The activity ``settle_call``."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name="settle_call")
    async def settle_call(self, cut: CutCall) -> Failed:
        """What the attempts at a call used, by what the archive has of them; it is broken off
        before, where this process still makes it.

        One that another process makes counts as an estimate, by its request.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        run = activity.info().workflow_run_id or ""
        run = keys.side_run(run, cut.side) if cut.side else run
        await break_off(run, cut.activity)
        archive = JobArchive.of(self._store, cut.key)
        options = ModelOptions.model_validate(cut.model)
        return await asyncio.to_thread(spent_on_call, archive, run, cut.turn, cut.activity, options)
