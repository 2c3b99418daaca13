"""Views that a tick read and found as they were, of which a record is followed: the archive has no
reading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.base.spec.models import Writable
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from tests.replay.replays import follows_its_record, prepared, reexecution, replayed
from tests.workflow.stage import Stage, activities_of
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("freq", ['"Sync"', '("Periodic", 0.001)'])
async def test_what_a_statement_may_have_changed_and_did_not(stage: Stage, freq: str) -> None:
    """Whoever follows the record knows when its tick looked, and that nothing was new."""
    (stage.workspace / "a.txt").write_text("a\n")
    replies = [
        f"v = view('*.txt', lod=1).Run(freq={freq})",
        "write('below/other.py', '1')",
        "print(v.dirty, v.last_tick_turn)",
        "write('b.txt', '2')",
        "print(v.dirty, v.last_tick_turn)",
        "finish(v.text)",
    ]
    outcome, _ = await stage.run(replies, id="job", writable=Writable(sandbox="none"))
    await follows_its_record(stage, "job", outcome, 6)


AGENT = """
import time
from pathlib import Path

def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages)
    asked, may = (Path(__file__).with_suffix(end) for end in (".asked", ".may"))
    if turn == 2:
        asked.touch()
        while not may.exists():
            time.sleep(0.01)
    return REPLIES[turn]
"""
"""Gives the third reply when it may."""


def _agent(stage: Stage, replies: list[Any]) -> Path:
    agent = stage.path / "agent.py"
    replies = [one if isinstance(one, dict) else {"code": one} for one in replies]
    agent.write_text(f"REPLIES = {replies!r}\n{AGENT}")
    return agent


@pytest.mark.parametrize("between", ["x = 1", "wait_for(v, timeout=2)"])
async def test_what_the_background_found_as_it_was(stage: Stage, between: str) -> None:
    """A reading without news that a tick applied, of the turn or of a sleep, is applied again."""
    (stage.workspace / "a.txt").write_text("a\n")
    statements = [
        "v = view('*.txt', lod=1).Run(freq='Async')",
        f"write('below/other.py', '1')\n{between}",
        "x = 2",
        "print(v.dirty)",
        "finish(v.text)",
    ]
    agent = _agent(stage, statements)
    spec = stage.spec(f"scripted/{agent}", id="job", writable=Writable(sandbox="none"))
    handle = await stage.start(spec)
    await eventually(agent.with_suffix(".asked").exists, "the third statement is asked for")
    await eventually(lambda: prepared(handle), "the readings end before the next turn")
    agent.with_suffix(".may").touch()
    outcome, archive = await handle.result(), stage.archive(spec)
    applied = [
        interim.payloads or interim.asleep
        for step in archive.steps(outcome.run)
        if (interim := step.interim).payloads or interim.asleep
    ]
    assert applied, "a reading was applied"
    await follows_its_record(stage, "job", outcome, 5)


async def test_what_a_sleep_found_as_it_was(stage: Stage) -> None:
    """That a sleeping job's tick took a view's mark away is in the record, with the time."""
    (stage.workspace / "a.txt").write_text("a\n")
    replies = [
        "v = view('*.txt', lod=1).Run(freq=('Periodic', 0.5))",
        "write('below/other.py', '1')\nwait(3600)",
        "print(v.dirty)",
        "finish(v.text)",
    ]
    spec = stage.spec(replies, id="job", writable=Writable(sandbox="none"))
    handle, archive = await stage.start(spec), stage.archive(spec)

    async def ticked() -> bool:
        # The second tick, when the first is over.
        return "turn-2-asleep-1" in activities_of(await handle.fetch_history())

    await eventually(ticked, "the sleep has two ticks")
    await handle.signal("message", Note.of("Wake up."))
    outcome = await handle.result()
    assert len(archive.find_step(outcome.run, 3).interim.ticks) == 1, "later ones had no news"
    await follows_its_record(stage, "job", outcome, 4)


async def test_the_turn_at_which_a_view_was_read_last(stage: Stage) -> None:
    """One that follows its source is read in each turn, with news or without."""
    (stage.workspace / "a.txt").write_text("a\n")
    replies = ["v = view('a.txt').Run()", "x = 1", "print(v.last_tick_turn)", "wait(0.1)"]
    replies += ["print(v.last_tick_turn)", "finish(1)"]
    outcome, _ = await stage.run(replies, id="job")
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 6)
    again, differs = await replayed(
        stage, "job", reexecution(stage, "job", outcome.run, 1, frozen=True)
    )
    assert (again.status, again.turns, differs) == (JobStatus.SUCCEEDED, 6, [])


@pytest.mark.parametrize("freq", ['("Periodic", 0.001)', '"Sync", min_turn_interval=2', '"Async"'])
async def test_the_turn_at_which_it_was_read_last_without_news(stage: Stage, freq: str) -> None:
    """No reading and no event tells of such a tick: what a statement was told of it does."""
    (stage.workspace / "a.txt").write_text("a\n")
    replies = [
        f"v = view('a.txt').Run(freq={freq})",
        {"code": "x = 1", "delay": 1},
        {"code": "wait_for(v, timeout=1)", "delay": 1},
        {"code": "before = v.last_tick_turn\nv.Refresh()", "delay": 1},
        {"code": "print(before, v.last_tick_turn)", "delay": 1},
        "print(v.last_tick_turn)",
        "finish(before)",
    ]
    agent = _agent(stage, replies)
    handle = await stage.start(spec := stage.spec(f"scripted/{agent}", id="job"))
    await eventually(agent.with_suffix(".asked").exists, "the third statement is asked for")
    if freq == '"Async"':
        await eventually(lambda: prepared(handle), "the readings end before the next turn")
    agent.with_suffix(".may").touch()
    outcome, archive = await handle.result(), stage.archive(spec)
    assert archive.end(outcome.run).result > 1, "a tick reached it behind its first reading"
    await follows_its_record(stage, "job", outcome, 7)


async def test_a_group_that_a_sleep_recomputed_without_a_reading(stage: Stage) -> None:
    """Its interval was over at a tick that found the other view as it was: a record has that tick,
    for the interval runs from it on.
    """
    (stage.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    (stage.workspace / "b.txt").write_text("b\n")
    replies = [
        "a = view('a.txt', tokens=40)\nb = view('b.txt').Run(freq=('Periodic', 0.5))\n"
        "g = group(a, lod=1).Run(freq=('Periodic', 3))",
        "a.SetPos(5)",
        "a.SetPos(10)\nwait(8)",
        "print(g.text)\na.SetPos(20)\nwait(2)",
        "print(g.text)",
        "finish(g.text)",
    ]
    outcome, _ = await stage.run(replies, id="job")
    await follows_its_record(stage, "job", outcome, 6)
