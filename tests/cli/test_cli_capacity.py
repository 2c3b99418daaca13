"""The model of capacity says what a batch took that was really run."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from temporalio.api.history.v1 import HistoryEvent

from infra.sizing.actions import actions
from infra.sizing.load import Load
from infra.sizing.model import Job
from runtime.archive.stores import open_existing
from runtime.server.connection import connect
from runtime.server.target import Target
from tests.cli.command_line import UNHURRIED, CommandLine, script

JOBS, TURNS = 20, 5


async def histories(batch: str) -> dict[str, list[HistoryEvent]]:
    """The events of the batch's workflow and of its jobs'."""
    found = {}
    async with connect(Target()) as connection:
        for name in [batch, *(f"{batch}/j{n}" for n in range(JOBS))]:
            handle = connection.client.get_workflow_handle(f"holdfast/{name}")
            found[name] = list((await handle.fetch_history()).events)
    return found


def test_a_batch_took_what_was_said(cli: CommandLine) -> None:
    """Of 20 jobs of 5 turns: Actions and objects within 5 %, bytes within 15 %."""
    cli.write("five.json", script(*(f"x = {n}\nprint('turn', x)" for n in range(4)), "finish(x)"))
    jobs = [f"id: j{n}, model: scripted/five.json, {UNHURRIED}" for n in range(JOBS)]
    done = cli("run", cli.jobs(*jobs, batch="sized"), "--json")
    assert done.code == 0, done.err
    assert Counter(job["turns"] for job in done.summary().values()) == {TURNS: JOBS}

    # What is new in a turn of these: a statement, what it printed, and what is said about both.
    said = Job.of(
        Load(1, turns=TURNS, completion_tokens=8, new_tokens=3, call_seconds=0, effects=0)
    )
    took = asyncio.run(histories("sized"))
    sizes = {name: sum(event.ByteSize() for event in events) for name, events in took.items()}
    # As in a bucket, which has no packs.
    store = open_existing(str(cli.home / "archive"))
    objects = [len(store.get(key)) for key in store.list("sized/")]
    assert sum(map(actions, took.values())) == pytest.approx(JOBS * said.actions, rel=0.05)
    assert len(objects) == pytest.approx(JOBS * said.writes, rel=0.05)
    assert sum(sizes.values()) == pytest.approx(JOBS * said.history_bytes, rel=0.15)
    assert sum(objects) == pytest.approx(JOBS * said.archive_bytes, rel=0.15)
