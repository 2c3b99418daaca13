"""Which ends a batch tells of, and that it goes on in another run with few that are to be told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import pytest
from stage import Stage, replayer

from runtime.archive.notices import notices
from runtime.base.spec.finish import OnFinish
from runtime.base.workflow_ids import batch_workflow_id
from runtime.server.authentic import in_workflow
from tests.eventually import eventually
from tests.servers.handled import handled
from workflows import batch as batches
from workflows import finishing
from workflows.messages import BatchOrder

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

LONG = 150
"""Events after which the batch is to go on in another run: some twelve jobs have ended by then."""


class Hears(BaseHTTPRequestHandler):
    """Keeps what it was told."""

    told: ClassVar[list[dict[str, Any]]]

    def do_POST(self) -> None:
        """Answer."""
        self.told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Slow(BaseHTTPRequestHandler):
    """Hears nothing before it may."""

    may: ClassVar[threading.Event]

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["content-length"]))
        self.may.wait()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


async def test_a_slow_receiver_makes_no_run_begin_with_all_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run tells of them before it goes on, and no job begins meanwhile. All ends are told."""
    monkeypatch.setattr(batches, "MOST_EVENTS", LONG)
    monkeypatch.setattr(finishing, "CARRIED_BYTES", 500)
    names = [f"j{n}" for n in range(40)]
    orders = [stage.order([{"code": "finish(1)"}], id=name) for name in names]
    Slow.may = threading.Event()
    with handled(Slow) as url:
        try:
            hook = OnFinish(webhook=f"{url}/", directory=str(stage.path), timeout=600.0)
            batch = await stage.submit(*orders, concurrency=3, on_finish=hook)

            async def is_long() -> bool:
                description = await batch.describe()
                return description.raw_description.workflow_execution_info.history_length > LONG

            await eventually(is_long, "the history is long")
            Slow.may.set()
            await batch.result()
        finally:
            Slow.may.set()
    told = [one.job for one in notices(stage.store, stage.batch, []) if one.heard]
    assert sorted(told) == sorted([*names, ""])
    run, begun = (await batch.describe()).run_id, 0
    while run:
        handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch), run_id=run)
        history = await handle.fetch_history()
        await replayer().replay_workflow(history)
        first = history.events[0].workflow_execution_started_event_attributes
        (order,) = await in_workflow(stage.client, handle.id).decode(
            first.input.payloads, [BatchOrder]
        )
        if order.carried is not None:
            due = order.carried.finishing.due
            assert sum(len(one.model_dump_json()) for one in due) <= 500
            begun += 1
        run = first.continued_execution_run_id
    assert begun > 0


async def test_a_job_that_runs_already_has_not_ended(stage: Stage) -> None:
    """One that was taken back while it waited for its place: nobody is told of an end of it, and
    the batch's end does not count it.
    """
    Hears.told = []
    waits = await stage.start(stage.spec(["wait(3600)"], id="taken"))
    with handled(Hears) as url:
        hook = OnFinish(webhook=f"{url}/", directory=str(stage.path))
        orders = [stage.order([{"code": "finish(2)"}], id=name) for name in ("taken", "own")]
        batch = await stage.submit(*orders, concurrency=2, on_finish=hook)
        assert (await batch.result()).ended == {"own": "succeeded", "taken": "running"}
    ends = [(one["event"], one.get("job"), one["status"]) for one in Hears.told]
    assert ends == [("job", "own", "succeeded"), ("batch", None, "succeeded")]
    assert Hears.told[-1]["statuses"] == {"succeeded": 1}
    await replayer().replay_workflow(await batch.fetch_history())
    await waits.terminate()
