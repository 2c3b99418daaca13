"""A batch that has ended and is given again: what its jobs have spent is spent."""

from __future__ import annotations

import pytest
from stage import Stage, replayer

from runtime.archive import keys
from runtime.archive.spending import spent_in
from runtime.base.spec.models import BatchBudget, BatchSpec
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.control import Control
from runtime.worker.worker import make_worker
from workflows.messages import batch_queue

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_a_batch_that_begins_again_has_what_is_left_of_its_budget(stage: Stage) -> None:
    """With more jobs, and with jobs that are begun anew: all their runs together keep it."""
    control = Control(stage.client, stage.store)
    specs = [stage.spec(["x = 1"] * 40, id=name) for name in ("a", "b")]

    async def turns_after(jobs: int, turns: int, *, rerun: bool) -> int | None:
        """What all jobs have spent after the first so many ran with that budget."""
        batch = BatchSpec(
            batch=stage.batch,
            concurrency=1,
            jobs=tuple(specs[:jobs]),
            budget=BatchBudget(turns=turns, tokens=10**9),
        )
        await control.submit(await control.plan(batch, rerun_failed=rerun))
        handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch))
        await handle.result()
        await replayer().replay_workflow(await handle.fetch_history())
        spent = spent_in(stage.store, stage.batch)
        tokens = [
            step.usage.total
            for spec in specs[:jobs]
            for run in stage.archive(spec).runs()
            for step in stage.archive(spec).steps(run)
        ]
        assert (spent.turns, spent.tokens) == (len(tokens), sum(tokens))
        return spent.turns

    async with make_worker(stage.client, stage.store, task_queue=batch_queue(stage.batch)):
        assert await turns_after(1, 8, rerun=False) == 8
        assert await turns_after(2, 12, rerun=False) == 12
        assert await turns_after(2, 15, rerun=True) == 15
    # The start of a run may be lost; what it spent is not.
    first, last = stage.archive(specs[0]).runs()
    for run in (first, last):
        stage.store.remove(keys.run_key(f"{stage.batch}/{specs[0].id}", run))
        assert spent_in(stage.store, stage.batch).turns == 15
