"""Level 2 of views: a summary that a model writes in the background, once for all jobs; level 1 stands in until then."""

from __future__ import annotations

import pytest
from stage import Stage

from runtime.archive.verify import damage, verify_job
from runtime.job.stops import JobStatus
from runtime.spec.models import ModelSettings

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


def writer(stage: Stage) -> ModelSettings:
    """A scripted model that writes summaries, and counts its calls beside its script."""
    path = stage.path / "writer.py"
    path.write_text(WRITER)
    return ModelSettings(name=f"scripted/{path}")


async def test_the_structure_stands_in_until_the_summary_is_there(stage: Stage) -> None:
    """The view says so; the summary comes at a tick, the call is archived, and a second job pays nothing."""
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
    _, other = await stage.run(["a = view('a.py', lod=2, tokens=300)", "finish(a.text)"], summary_model=model)
    ended = other.end(other.runs()[-1])
    assert ended is not None and ended.result == "- adds numbers"
    assert (stage.path / "writer.calls").read_text() == "call\n"


async def test_a_job_without_a_model_for_summaries_says_so(stage: Stage) -> None:
    """A script cannot be expected to sum up; the structure stays, and nothing is begun in the background."""
    (stage.workspace / "a.py").write_text("def add(a, b):\n    return a + b\n")
    outcome, archive = await stage.run(["a = view('a.py', lod=2, tokens=300)", "finish(a.text)"])
    end = archive.end(outcome.run)
    assert end is not None and end.result.startswith("0: def add(a, b)")
    [view] = [s.text for s in archive.turn_layout(outcome.run, 2) if s.origin == "node:view-1"]
    assert "no model writes summaries in this job" in view.splitlines()[0]
    assert archive.side_runs(outcome.run) == []
