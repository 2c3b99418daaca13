"""Level 2 of views: a summary that a model writes in the background, once for all jobs; level 1
stands in until then.
"""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, events_of
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from activities import summaries
from runtime.archive.job import JobArchive
from runtime.archive.spending import spent
from runtime.archive.verify import damage, verify_job
from runtime.archive.workspaces import workspace_after
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import Budget, ModelSettings, ToolSpec, Writable
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from tests.replay.replays import frozen_again

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WRITER = """
from pathlib import Path

def respond(messages):
    text = messages[-1]["content"]
    calls = Path(__file__).with_suffix(".calls")
    calls.write_text((calls.read_text() if calls.exists() else "") + "call\\n")
    return "- adds numbers" if "def add" in text else "- something else"
"""

AGENT = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    if turn == 1:
        return {"code": "a = view('a.py', lod=2, tokens=300)\\nfirst = a.text"}
    shown = any("- adds numbers" in str(message.get("content")) for message in messages)
    return {"code": "finish([first, a.text, a.lod])" if shown else "wait(1)"}
"""

ENDING = """
from pathlib import Path

def respond(messages):
    if not any(message["role"] == "assistant" for message in messages):
        return {"code": "a = view('a.py', lod=2, tokens=300)"}
    asked = Path(__file__).with_name("writer.calls").exists()
    return {"code": "finish(1)" if asked else "wait(1)"}
"""
"""An agent that finishes as soon as its summary's writer was asked."""


def writer(stage: Stage) -> ModelSettings:
    """A scripted model that writes summaries, and counts its calls beside its script."""
    path = stage.path / "writer.py"
    path.write_text(WRITER)
    return ModelSettings(name=f"scripted/{path}")


async def test_the_structure_stands_in_until_the_summary_is_there(stage: Stage) -> None:
    """The view says so; the summary comes at a tick, the call is archived, and a second job pays
    nothing.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    model = writer(stage)
    agent = stage.path / "agent.py"
    agent.write_text(AGENT)
    outcome, archive = await stage.run(f"scripted/{agent}", summary_model=model)
    assert outcome.status is JobStatus.SUCCEEDED
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result[0].startswith("0: def add(a, b)")
    assert end.result[1:] == ["- adds numbers", 2]
    stood_in = [s.text for s in archive.turn_layout(outcome.run, 2) if s.origin == "node:view-1"]
    assert "structure, standing in until its summary is written" in stood_in[0].splitlines()[0]
    assert len(archive.side_runs(outcome.run)) == 1
    assert damage(verify_job(archive)) == []
    _, other = await stage.run(
        ["a = view('a.py', lod=2, tokens=300)", "finish(a.text)"], summary_model=model
    )
    ended = other.end(other.runs()[-1])
    assert ended is not None and ended.result == "- adds numbers"
    assert (stage.path / "writer.calls").read_text() == "call\n"


async def test_what_was_read_names_the_version_of_the_jobs_own_files(stage: Stage) -> None:
    """The events of a payload name the version that was read for it: that of the turn in which it
    began. Those of a replay from the record say the same, but for the time that it took.
    """
    agent = stage.path / "agent.py"
    agent.write_text(AGENT.replace("a = view", "write('a.py', 'def add(): ...\\\\n')\\na = view"))
    spec = stage.spec(
        f"scripted/{agent}", summary_model=writer(stage), writable=Writable(sandbox="none")
    )
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    assert outcome.status is JobStatus.SUCCEEDED
    told = payloads_told(archive, outcome.run)
    written = workspace_after(archive, outcome.run, 1)
    assert [meta["basis"]["version"] for meta in told] == [written, written]
    assert [meta["source"][0] for meta in told] == [2, 2]
    again, other = await frozen_again(stage, spec, outcome.run)
    assert again.status is JobStatus.SUCCEEDED
    assert payloads_told(other, again.run) == told


def payloads_told(archive: JobArchive, run: str) -> list[dict[str, Any]]:
    """What the events of payloads say of them, without times."""
    metas = [
        event["payload_meta"]
        for step in archive.steps(run)
        for event in step.events or ()
        if event["type"].startswith("async_payload")
    ]
    for meta in metas:
        del meta["prepared_at"], meta["cost"]["time_ms"]
    return metas


async def test_a_job_without_a_model_for_summaries_says_so(stage: Stage) -> None:
    """A script cannot be expected to sum up; the structure stays, and nothing is begun in the
    background.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    outcome, archive = await stage.run(["a = view('a.py', lod=2, tokens=300)", "finish(a.text)"])
    end = archive.end(outcome.run)
    assert end is not None and end.result.startswith("0: def add(a, b)")
    [view] = [s.text for s in archive.turn_layout(outcome.run, 2) if s.origin == "node:view-1"]
    assert "no model writes summaries in this job" in view.splitlines()[0]
    assert archive.side_runs(outcome.run) == []


GROUPED = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    if turn == 1:
        return {"code": "g = group(view('a.py'), view('b.py'), tokens=300)\\nfirst = g.text"}
    if turn == 2:
        return {"code": "wait_for(g)"}
    return {"code": "finish([first, g.text])"}
"""

ABOUT = """
from pathlib import Path

def respond(messages):
    calls = Path(__file__).with_suffix(".calls")
    calls.write_text((calls.read_text() if calls.exists() else "") + "call\\n")
    return f"- {messages[-1]['content'].count('def ')} functions"
"""


def grouped(stage: Stage) -> tuple[str, ModelSettings]:
    """A job that groups two files, and the model that sums them up."""
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    (stage.workspace / "b.py").write_text("def sub(a, b):\n    return a - b\n")
    agent, model = stage.path / "agent.py", stage.path / "about.py"
    agent.write_text(GROUPED)
    model.write_text(ABOUT)
    return f"scripted/{agent}", ModelSettings(name=f"scripted/{model}")


@pytest.mark.smoke
async def test_a_group_is_summed_up_by_a_model(stage: Stage) -> None:
    """The extract stands in until then, the call is archived and paid for, and a second job pays
    nothing.
    """
    agent, model = grouped(stage)
    outcome, archive = await stage.run(agent, summary_model=model)
    end = archive.end(outcome.run)
    assert end is not None
    first, then = end.result
    assert "def add(a, b):" in first
    assert then.splitlines() == [
        "view-1 (view-1): a.py lines 0:2 of 2",
        "view-2 (view-2): b.py lines 0:2 of 2",
        "- 2 functions",
    ]
    stood_in = [s.text for s in archive.turn_layout(outcome.run, 2) if s.origin == "node:group-3"]
    assert "extract, standing in until its summary is written" in stood_in[0].splitlines()[0]
    (side,) = archive.side_runs(outcome.run)
    (call,) = archive.steps(side)
    assert call.cost_usd + sum(
        step.cost_usd for step in archive.steps(outcome.run)
    ) == pytest.approx(end.cost_usd)
    assert (
        call.usage.total + sum(step.usage.total for step in archive.steps(outcome.run))
        == end.usage.total
    )
    assert damage(verify_job(archive)) == []
    other, same = await stage.run(agent, summary_model=model)
    ended = same.end(other.run)
    assert ended is not None and ended.result[1] == then
    assert same.side_runs(other.run) == []
    assert (stage.path / "about.calls").read_text() == "call\n"


ECHO = """
from pathlib import Path

def respond(messages):
    Path(__file__).with_suffix(".asked").write_text(messages[-1]["content"])
    return "- a pair of notes"
"""


async def test_a_value_that_a_note_puts_together_is_masked_in_what_a_group_is_summed_up_from(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who has the environment: neither what is kept for the writer nor what it is asked holds
    the value, be it one of the job's own ``redact`` or any other.
    """
    monkeypatch.setenv("DB_PASSWORD", "correct horse battery")
    monkeypatch.setenv("TEAM_PIN", "4711-0815")
    model = stage.path / "echo.py"
    model.write_text(ECHO)
    statements = [
        "a = note('correct ' + 'horse battery')\nb = note('4711' + '-0815')\nwait_for(group(a, b))",
        "finish(1)",
    ]
    outcome, _ = await stage.run(
        statements,
        summary_model=ModelSettings(name=f"scripted/{model}"),
        redact=Redaction(env=("TEAM_PIN",)),
    )
    assert outcome.status is JobStatus.SUCCEEDED
    asked = model.with_suffix(".asked").read_text()
    [kept] = [stage.store.get(key).decode() for key in stage.store.list("_holdfast/material/")]
    for told in (asked, kept):
        assert "correct horse battery" not in told and "4711-0815" not in told
        assert "[masked:DB_PASSWORD:" in told and "[masked:TEAM_PIN:" in told


SLOW = """
import time
from pathlib import Path

def respond(messages):
    calls = Path(__file__).with_suffix(".calls")
    calls.write_text((calls.read_text() if calls.exists() else "") + "call\\n")
    while not Path(__file__).with_suffix(".go").exists():
        time.sleep(0.02)
    return "- adds numbers"
"""


async def test_two_workers_that_want_one_summary_at_once_pay_for_one(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """The second waits for the first by a claim in the store; its own job pays nothing."""
    stages = [Stage(temporal.client, tmp_path, f"claims-{n}") for n in range(2)]
    (stages[0].workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW)
    model = ModelSettings(name=f"scripted/{slow}")
    statements = ["a = view('a.py', lod=2, tokens=300)\nwait_for(a)", "finish(a.text)"]
    async with stages[0].open(), stages[1].open():
        specs = [stage.spec(statements, summary_model=model) for stage in stages]
        handles = [await stage.start(spec) for stage, spec in zip(stages, specs, strict=True)]
        for handle in handles:
            await eventually(partial(summarising, handle), "a summary is being written")
        slow.with_suffix(".go").touch()
        outcomes = [await handle.result() for handle in handles]
    archives = [stage.archive(spec) for stage, spec in zip(stages, specs, strict=True)]
    ends = [archive.end(outcome.run) for archive, outcome in zip(archives, outcomes, strict=True)]
    assert [end.result for end in ends if end is not None] == ["- adds numbers"] * 2
    assert slow.with_suffix(".calls").read_text() == "call\n"
    runs = [
        archive.side_runs(outcome.run) for archive, outcome in zip(archives, outcomes, strict=True)
    ]
    assert sorted(map(len, runs)) == [0, 1]
    for stage in stages:
        await stage.replay_all()


@pytest.mark.parametrize("last", ["finish(1)", "a.SetLod(0)\nfinish(1)", "a.Pause()\nfinish(1)"])
async def test_a_summary_that_is_cut_by_the_end_is_booked(stage: Stage, last: str) -> None:
    """The job ends while its summary is written: what was sent of it stands in the job's cost, and
    its attempt in the archive as one that was cut. So it is where the last statement wanted it no
    more.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    model, agent = writer(stage), stage.path / "agent.py"
    (stage.path / "writer.py").write_text(
        WRITER.replace('return "- adds', 'return {"delay": 600, "text": ""}\n    return "- adds')
    )
    agent.write_text(ENDING.replace('"finish(1)"', repr(last)))
    outcome, archive = await stage.run(f"scripted/{agent}", summary_model=model)
    assert outcome.status is JobStatus.SUCCEEDED
    [side] = archive.side_runs(outcome.run)
    [attempt] = [a for turn in (1, 2, 3) for a in archive.attempts_of(side, turn)]
    failure = archive.failure(attempt.key)
    assert failure is not None and failure.error_type == "CallCut"
    assert failure.spent.usage.prompt > 0
    turns = sum(step.usage.total for step in archive.steps(outcome.run))
    assert outcome.usage.total == turns + failure.spent.usage.total
    assert damage(verify_job(archive)) == []


CHANGING = """
from pathlib import Path

def respond(messages):
    told = " ".join(str(message.get("content")) for message in messages)
    if not any(message["role"] == "assistant" for message in messages):
        return {"code": "a = view('a.py', lod=2, tokens=300)"}
    if "print('changed')" not in told:
        asked = Path(__file__).with_name("writer.calls").exists()
        return {"code": "a.SetLod(0)\\nprint('changed')" if asked else "wait(1)"}
    if "print('settled')" in told:
        return {"code": "finish(1)"}
    settled = Path(__file__).with_suffix(".go").exists()
    return {"code": "print('settled')\\nwait(1)" if settled else "wait(1)"}
"""
"""An agent that wants its summary no more as soon as its writer was asked, and goes on."""


async def test_a_summary_that_is_cut_is_booked_at_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A step of the job tells what it used, as of any other: no budget need wait for the end. That
    it was cut is no error that would be logged.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    model, agent = writer(stage), stage.path / "agent.py"
    (stage.path / "writer.py").write_text(
        WRITER.replace('return "- adds', 'return {"delay": 600, "text": ""}\n    return "- adds')
    )
    agent.write_text(CHANGING)
    handle = await stage.start(spec := stage.spec(f"scripted/{agent}", summary_model=model))

    async def settled() -> bool:
        history = await handle.fetch_history()
        asked = [
            event.event_id
            for event in events_of(history, "ACTIVITY_TASK_SCHEDULED")
            if event.activity_task_scheduled_event_attributes.activity_id == "settle-payload-1"
        ]
        answered = events_of(history, "ACTIVITY_TASK_COMPLETED")
        return asked != [] and asked[0] in {
            event.activity_task_completed_event_attributes.scheduled_event_id for event in answered
        }

    await eventually(settled, "the job knows what the summary used")
    agent.with_suffix(".go").touch()
    outcome, archive = await handle.result(), stage.archive(spec)
    [side] = archive.side_runs(outcome.run)
    [attempt] = [a for turn in (1, 2, 3) for a in archive.attempts_of(side, turn)]
    failure = archive.failure(attempt.key)
    assert failure is not None and failure.spent.usage.prompt > 0
    told = [s.interim.usage.total for s in archive.steps(outcome.run) if s.interim.usage.total]
    assert told == [failure.spent.usage.total]
    await stage.replay_all()
    # Of what is out of memory.
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


CHECKS = """
import time
from pathlib import Path
from typing import Any

def patient(result: Any, workspace: str) -> float:
    \"\"\"Ends when it may.\"\"\"
    while not Path(__file__).with_suffix(".go").exists():
        time.sleep(0.02)
    return 1.0
"""


async def test_a_summary_that_ends_unseen_is_booked(stage: Stage) -> None:
    """It ends while the result is checked, after the last turn: its cost is the job's all the
    same.
    """
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    slow, agent, checks = (stage.path / f"{name}.py" for name in ("writer", "agent", "checks"))
    slow.write_text(SLOW)
    agent.write_text(ENDING)
    checks.write_text(CHECKS)
    spec = stage.spec(
        f"scripted/{agent}",
        summary_model=ModelSettings(name=f"scripted/{slow}"),
        check=ToolSpec(
            name="patient", target="checks:patient", search_path=str(stage.path), stub=""
        ),
    )
    handle = await stage.start(spec)

    async def checking() -> bool:
        return "check_result" in await started(handle)

    async def summed_up() -> bool:
        return await started(handle) == ["check_result"]

    await eventually(checking, "the result is checked")
    slow.with_suffix(".go").touch()
    await eventually(summed_up, "the summary is written")
    checks.with_suffix(".go").touch()
    outcome, archive = await handle.result(), stage.archive(spec)
    [side] = archive.side_runs(outcome.run)
    steps = [*archive.steps(outcome.run), *archive.steps(side)]
    assert outcome.usage.total == sum(step.usage.total for step in steps)
    assert outcome.cost_usd == pytest.approx(sum(step.cost_usd for step in steps))


async def summarising(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether a worker is writing a summary of a source."""
    return "summarise_source" in await started(handle)


async def started(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """The activities of a job that a worker has begun and not ended."""
    pending = (await handle.describe()).raw_description.pending_activities
    return [
        a.activity_type.name
        for a in pending
        if a.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    ]


MANY = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    if turn == 1:
        lines = [f"v{n} = view('f{n}.py', lod=2, tokens=300)" for n in range(8)]
        return {"code": "\\n".join(lines)}
    lines = "\\n".join(str(message.get("content")) for message in messages).splitlines()
    for n in range(8):
        told = [line for line in lines if line.startswith(f"[v{n}: view of ")]
        if turn == 2 or "standing in until" in told[-1]:
            views = ", ".join(f"v{n}" for n in range(8))
            return {"code": f"wait_for({views}, timeout=60)"}
    return {"code": "finish(1)"}
"""


async def test_a_summary_whose_worker_died_with_it_is_booked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been kept by then, so that the next attempt asks no model."""
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    kept: list[str] = []
    keep = summaries.cache.keep

    def and_dies(*arguments: Any) -> None:
        keep(*arguments)
        kept.append(arguments[2])
        raise OSError("killed")

    monkeypatch.setattr(summaries.cache, "keep", and_dies)
    agent = stage.path / "agent.py"
    agent.write_text(AGENT)
    outcome, archive = await stage.run(f"scripted/{agent}", summary_model=writer(stage))
    assert outcome.status is JobStatus.SUCCEEDED
    assert kept == ["- adds numbers"]
    told = spent(archive)
    assert (told["calls"], told["failed_attempts"]) == (outcome.turns + 1, 0)
    assert outcome.usage.total == told["prompt"] + told["completion"]


async def test_summaries_at_once_never_spend_more_than_is_left(stage: Stage) -> None:
    """Each would fit alone, all together would not: the structure stands in for those that might
    be too much, and the job ends as ever.
    """
    for n in range(8):
        lines = [f"def function_{n}_{line}(a, b): return a + b + {line}\n" for line in range(300)]
        (stage.workspace / f"f{n}.py").write_text("".join(lines))
    agent = stage.path / "agent.py"
    agent.write_text(MANY)
    budget = Budget(turns=20, tokens=60_000, usd=1000.0)
    outcome, archive = await stage.run(
        f"scripted/{agent}", summary_model=writer(stage), budget=budget
    )
    assert outcome.status is JobStatus.SUCCEEDED
    sides = [step for run in archive.side_runs(outcome.run) for step in archive.steps(run)]
    assert 0 < sum(step.usage.total for step in sides) <= 30_000
    assert outcome.usage.total <= 60_000
