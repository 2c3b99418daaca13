"""What is at work when a job is reset: payloads that are being prepared, and the effect that a
statement waits for.
"""

from __future__ import annotations

import asyncio

import pytest

from runtime.archive.forms import Capture
from runtime.base.spec.models import ModelSettings
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from tests.replay.replays import reexecution, replayed, rerun, turn_of
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage, activities_of

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WRITER = """
import time
from pathlib import Path


def respond(messages):
    while not Path(__file__).with_suffix(".go").exists():
        time.sleep(0.02)
    return "- adds numbers"
"""

AGENT = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    if turn == 1:
        return {"code": "a = view('a.py', lod=2, tokens=300)\\nn = 1"}
    if turn < 5:
        return {"code": "n += 1\\nprint(n)"}
    shown = any("- adds numbers" in str(message.get("content")) for message in messages)
    return {"code": "finish([n, a.text])" if shown else "wait(1)"}
"""

TOOL = '''
import time
from pathlib import Path

HERE = Path(__file__).parent


def slow(number: int) -> int:
    """Waits to be let go."""
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{number}\\n")
    while not (HERE / "go").exists():
        time.sleep(0.02)
    return number
'''


async def test_a_payload_in_flight(stage: Stage) -> None:
    """The new run has it prepared too, and applies it once; a frozen replay takes it from the
    record at the recorded tick.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    (stage.path / "writer.py").write_text(WRITER)
    (stage.path / "agent.py").write_text(AGENT)
    spec = stage.spec(
        f"scripted/{stage.path / 'agent.py'}",
        id="job",
        summary_model=ModelSettings(name=f"scripted/{stage.path / 'writer.py'}"),
    )
    handle = await stage.start(spec)
    archive = archive_of(stage, "job")
    await turn_of(archive, 4)
    first = archive.runs()[0]
    again = asyncio.create_task(replayed(stage, "job", rerun(stage, "job", first, 4)))
    async with asyncio.timeout(200):
        while (await handle.describe()).run_id == first or len(archive.runs()) < 2:  # noqa: ASYNC110 nobody wakes us
            await asyncio.sleep(0.02)
    (stage.path / "writer.go").touch()
    outcome, _ = await again
    assert (outcome.status, archive.end(outcome.run).result) == (
        JobStatus.SUCCEEDED,
        [4, "- adds numbers"],
    )
    brought = [
        one
        for step in archive.steps(outcome.run)
        for one in (*step.interim.asleep, *step.interim.payloads)
    ]
    assert len(brought) == 1
    (stage.workspace / "a.py").write_text("gone = 1\n")
    for start in (4, 2, 1):
        frozen, found = await replayed(
            stage, "job", reexecution(stage, "job", outcome.run, start, frozen=True)
        )
        assert [one.line() for one in found] == []
        assert archive.end(frozen.run).result == [4, "- adds numbers"]
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")


async def test_an_effect_in_flight(stage: Stage) -> None:
    """The call of the old run is given up: the new run neither waits for it nor has its result."""
    (stage.path / "slow_tools.py").write_text(TOOL)
    tool = describe_tool("slow_tools:slow", str(stage.path))
    await stage.start(stage.spec(["n = 1", "n = slow(n)", "finish(n)"], id="job", tools=(tool,)))
    archive = archive_of(stage, "job")
    async with asyncio.timeout(200):
        while not (stage.path / "calls").exists():  # noqa: ASYNC110 nobody wakes us
            await asyncio.sleep(0.02)
    run = archive.runs()[0]
    edited, _ = await replayed(stage, "job", rerun(stage, "job", run, 2, statement="n = 7"))
    assert (edited.status, archive.end(edited.run).result) == (JobStatus.SUCCEEDED, 7)
    history = await stage.client.get_workflow_handle(
        stage.started[0], run_id=edited.run
    ).fetch_history()
    assert [name for name in activities_of(history) if "effect" in name] == []
    assert archive.find_step(edited.run, 2).capture is Capture.EDITED
    (stage.path / "go").touch()
    again, _ = await replayed(stage, "job", rerun(stage, "job", run, 2))
    assert (again.status, archive.end(again.run).result) == (JobStatus.SUCCEEDED, 1)
    assert (stage.path / "calls").read_text().split() == ["1", "1"]
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")
