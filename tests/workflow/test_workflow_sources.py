"""Views of what is not a file of the workspace, in real jobs: the archive of other jobs, tool
results; and what prefixes cost.
"""

from __future__ import annotations

import json

import pytest
from stage import Stage

from runtime.base.fences import fenced
from runtime.base.spec.models import ProjectionPolicy
from runtime.cli.main import main
from runtime.job.places import Places
from runtime.job.stops import JobStatus
from runtime.projection.segments import SegmentKind
from tests.workflow.prompt_rules import unexplained

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_a_prefix_that_moves_for_no_stated_reason_fails_the_test(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is what the stage looks for when a test is over: with a job that does not tell why, it
    finds the turn.
    """
    (stage.workspace / "a.txt").write_text("".join(f"line {n} of the file\n" for n in range(200)))
    monkeypatch.setattr(Places, "why", "")
    sources = [
        "a = view('a.txt', tokens=300)",
        "print('word ' * 900)",
        "a.SetPos(100)",
        "finish(1)",
    ]
    outcome, archive = await stage.run(
        sources, projection=ProjectionPolicy.INLINE, context_tokens=50_000
    )
    assert unexplained(archive) == [
        f"{outcome.run}, turn 4: view node:view-1 moved for no stated reason"
    ]
    with pytest.raises(AssertionError):
        stage.check_prompts()
    stage.started.clear()


async def test_a_job_views_the_turns_of_another_and_its_own_effects(stage: Stage) -> None:
    """A turn's statement and result, the whole job, and a read of its own; what is not there is an
    error.
    """
    (stage.workspace / "a.txt").write_text("words of a\n")
    first, _ = await stage.run(["x = 6 * 7\nprint('the answer is', x)", "finish({'x': x})"])
    outcome, archive = await stage.run(
        [
            "t = view('holdfast://job-1@1', tokens=300)\nj = view('holdfast://job-1', tokens=300)",
            "text = open('a.txt').read()",
            "e = view('holdfast://self@2/effect/0')\nprint(t.path)",
            (
                "try:\n    view('holdfast://job-1@99')\nexcept FileNotFoundError as error:\n   "
                " print(error)"
            ),
            "finish([t.text, j.text, e.text])",
        ]
    )
    assert (first.status, outcome.status) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED)
    end = archive.end(outcome.run)
    assert end is not None
    turn, job, effect = end.result
    assert turn.splitlines() == [
        "# Turn 1",
        "",
        "## Statement",
        "",
        "x = 6 * 7",
        "print('the answer is', x)",
        "",
        "## Result",
        "",
        "[turn 1: ok]",
        *fenced("the answer is 42").splitlines(),
    ]
    assert "# Goal\n\nDo what the script says.\n\n# Turns\n\n1:" in job
    assert job.startswith("# Status\n\n")
    assert '"x": 42' in job
    assert "words of a" in effect
    layout = archive.turn_layout(outcome.run, 5)
    assert any(
        "has no turn 99" in segment.text for segment in layout if segment.kind is SegmentKind.RESULT
    )


@pytest.mark.parametrize("policy", list(ProjectionPolicy))
async def test_each_step_says_how_much_of_its_prompt_stood_and_why_it_moved(
    stage: Stage, policy: ProjectionPolicy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside what the provider reports: the stable share, the first segment that broke, the
    statement, and what it cost.
    """
    (stage.workspace / "a.txt").write_text("".join(f"line {n} of the file\n" for n in range(200)))
    long = "print('word ' * 900)"
    outcome, archive = await stage.run(
        ["a = view('a.txt', tokens=300)", long, long, long, "a.SetPos(100)", "x = 1", "finish(1)"],
        projection=policy,
        context_tokens=50_000,
    )
    assert outcome.status is JobStatus.SUCCEEDED
    prefixes = {step.turn: step.prefix for step in archive.steps(outcome.run)}
    moved = {
        turn: prefix for turn, prefix in prefixes.items() if prefix is not None and prefix.broken
    }
    if policy is ProjectionPolicy.INLINE:
        assert list(moved) == [6]
        assert (moved[6].broken, moved[6].reason) == ("view node:view-1", "turn 5: a.SetPos")
        assert moved[6].lost > 2_700 and moved[6].share < 0.5
        store = ["--store", str(stage.path / "archive")]
        assert main(["diff", f"{stage.batch}/job-1@6", *store]) == 0
        told = capsys.readouterr().out
        line = "moved: view node:view-1; turn 5: a.SetPos; "
        assert (
            line
            + f"{moved[6].lost:,} tokens written to the cache anew, $0.0000 more than reading them"
            in told
        )
        assert f"cache: {moved[6].stable:,} tokens stood; the provider reports nothing" in told
        assert main(["cost", stage.batch, "--json", *store]) == 0
        [job] = json.loads(capsys.readouterr().out)["jobs"]
        assert (job["moved_prefixes"], job["lost_usd"]) == (1, 0.0)
        assert main(["cost", stage.batch, *store]) == 0
        told = capsys.readouterr().out
        assert "1 moved prefix ($0.0000)  " in told and "effect" in told.split("prefix")[1]
    else:
        assert moved == {}
    last = prefixes[7]
    assert last is not None and last.share > 0.85
    assert last.stable + last.new + last.tail == sum(
        s.tokens for s in archive.turn_layout(outcome.run, 7)
    )
