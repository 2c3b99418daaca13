"""What Temporal's own UI and CLI show of jobs: search attributes and the current details."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowHistory

from runtime.archive.approvals import waiting_question
from runtime.archive.stores import open_store
from runtime.base.home import Home
from runtime.base.search_attributes import Attribute
from runtime.server.connection import Target, connect
from runtime.worker.worker import running_worker
from tests.cli.command_line import CommandLine, script
from tests.eventually import eventually
from tests.workflow.stage import events_of, replayer
from workflows.messages import batch_queue
from workflows.visible import TOLD_TURNS

pytestmark = pytest.mark.server

PAY = "def pay() -> int:\n    return 1\n"


def test_jobs_can_be_searched_for_and_say_how_they_stand(cli: CommandLine, kept_home: Path) -> None:
    """A failed job is found by its status, a query that Temporal's list takes; each short
    run has two upserts, and says how it ended.
    """
    cli.write("good.yaml", script("x = 1", "x = 2", "finish(1)"))
    cli.write("bad.yaml", script("x = 1"))
    file = cli.jobs(
        "id: good, model: scripted/good.yaml", "id: bad, model: scripted/bad.yaml", batch="visible"
    )
    assert cli("run", file).code == 1
    asyncio.run(_look(Home(kept_home)))


def test_a_job_that_runs_or_waits_says_so(cli: CommandLine, kept_home: Path) -> None:
    """After some turns their number and cost are told, and that a job waits for a person."""
    many = [f"x = {n}" for n in range(TOLD_TURNS)]
    cli.write("mine.py", "from holdfast import tool\n@tool(approval='always')\n" + PAY)
    cli.write("asks.json", script(*many, "pay()", "finish(1)"))
    tools = "tools: ['mine:pay'], budget: {turns: 40}"
    file = cli.jobs(f"id: asks, model: scripted/asks.json, {tools}", batch="visible-waits")
    running = cli.start("run", file, "--json")
    asyncio.run(_look_while(Home(kept_home), cli))
    assert cli.finished(running).code == 0
    history = asyncio.run(_history(Home(kept_home)))
    assert [
        (json.loads(one[Attribute.STATUS].data), int(one[Attribute.TURNS].data or 0))
        for one in _told(history)
    ] == [("running", 0), ("running", 25), ("waiting", 26), ("running", 26), ("succeeded", 27)]


def _told(history: WorkflowHistory) -> list[Any]:
    """What each upsert has of the job; Temporal tells of a patch by one of its own."""
    told = [
        event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
        for event in events_of(history, "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES")
    ]
    return [one for one in told if Attribute.STATUS in one]


async def _look_while(home: Home, cli: CommandLine) -> None:
    async with connect(Target(), home=home) as connection:
        client = connection.client

        async def found(query: str) -> list[str]:
            asked = f"HoldfastBatch = 'visible-waits' AND {query}"
            return [one.id async for one in client.list_workflows(asked)]

        async def waits() -> bool:
            turns = f"HoldfastTurns = {TOLD_TURNS + 1}"
            return bool(await found(f"HoldfastStatus = 'waiting' AND {turns}"))

        await eventually(waits, "the waiting job is listed")
        # It stands as waiting as soon as it asks, and its question is archived after that.
        asking = cli.archive("visible-waits", "asks")
        await eventually(lambda: waiting_question(asking) is not None, "its question")
        assert (await asyncio.to_thread(cli, "approve", "visible-waits/asks")).code == 0


async def _history(home: Home) -> WorkflowHistory:
    async with connect(Target(), home=home) as connection:
        handle = connection.client.get_workflow_handle("holdfast/visible-waits/asks")
        history = await handle.fetch_history()
        await replayer(home).replay_workflow(history)
        return history


async def _look(home: Home) -> None:
    async with connect(Target(), home=home) as connection:
        client = connection.client

        async def failed() -> list[str]:
            query = "HoldfastBatch = 'visible' AND HoldfastStatus = 'failed' AND HoldfastTurns >= 1"
            return [one.id async for one in client.list_workflows(query)]

        await eventually(lambda: _is(failed, ["holdfast/visible/bad"]), "the failed job is listed")
        good = client.get_workflow_handle("holdfast/visible/good")
        described = await good.describe()
        attributes = {pair.key.name: pair.value for pair in described.typed_search_attributes}
        assert attributes.pop(Attribute.MODEL).startswith("scripted/")
        for own in ("BuildIds", "TemporalChangeVersion"):
            attributes.pop(own, None)
        assert attributes == {
            Attribute.BATCH: "visible",
            Attribute.JOB: "good",
            Attribute.STATUS: "succeeded",
            Attribute.TURNS: 3,
            Attribute.COST: 0.0,
        }
        batch = await client.get_workflow_handle("holdfast/visible").describe()
        found = {pair.key.name: pair.value for pair in batch.typed_search_attributes}
        assert found.get(Attribute.BATCH) == "visible"
        history = await good.fetch_history()
        assert len(_told(history)) == 2
        await replayer(home).replay_workflow(history)
        named = [
            client.data_converter.payload_converter.from_payload(event.user_metadata.summary)
            for event in events_of(history, "ACTIVITY_TASK_SCHEDULED")
            if event.activity_task_scheduled_event_attributes.activity_type.name == "call_model"
        ]
        assert named == ["turn 1", "turn 2: x = 1", "turn 3: x = 2"]
        async with running_worker(
            client, open_store(str(home.archive)), task_queue=batch_queue("visible")
        ):
            assert (await _details(client, "good")) == "succeeded after turn 3"
            assert (await _details(client, "bad")).startswith("failed after turn 1: ")


async def _is(asked: Any, expected: Any) -> bool:
    return bool(await asked() == expected)


async def _details(client: Client, job: str) -> str:
    handle = client.get_workflow_handle(f"holdfast/visible/{job}")
    told = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return told.current_details
