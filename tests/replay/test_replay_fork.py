"""Forks: another job from the same point, out of the archive, also when Temporal has forgotten the
run.
"""

from __future__ import annotations

from typing import Any

import pytest
from temporalio import workflow
from temporalio.testing import WorkflowEnvironment

from activities.record import ReplayOrder, RunName
from runtime.archive.checkpoints import checkpoint_before
from runtime.archive.divergences import divergences
from runtime.archive.forms import Capture
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError, NotFound
from runtime.base.spec.models import ModelSettings, Spawn, Writable
from runtime.base.values import JobKey
from runtime.client.resets import outcome_of_reset
from runtime.job.divergence import Aspect
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from tests.eventually import forgotten
from tests.replay.replays import fork_job, reexecution, replayed, rerun, reset_job
from tests.replay.timelines import archive_of, came_to, replay_runs, sound, timeline
from tests.workflow.stage import Stage, activities_of
from workflows.messages import JobOutcome

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TOOL = "from holdfast import tool\n\n\n@tool()\ndef told(n: int) -> int:\n    return n\n"

TURNS = 70
"""Past the first checkpoint, at turn 64, and through a continue-as-new."""


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


def _statements() -> list[str]:
    moves = [
        "n += 1",
        "import random\nr = random.random()\nprint(r)",
        "text = open('data.txt').read()\nprint(text)",
        "a.SetPos(str(n))",
    ]
    return [
        "n = 0\na = view('a.py', tokens=100).Run(freq='Sync')",
        *(moves[n % 4] for n in range(TURNS - 2)),
        "finish(n)",
    ]


async def _recorded(stage: Stage) -> tuple[JobOutcome, JobArchive]:
    (stage.workspace / "a.py").write_text(
        "".join(f"def f{n}():\n    return {n}\n\n" for n in range(20))
    )
    (stage.workspace / "data.txt").write_text("data\n")
    outcome, archive = await stage.run(_statements(), id="job", turns=100)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS)
    assert len(archive.runs()) > 1
    return outcome, archive


async def test_forks_and_resets_go_on_from_before_and_after_a_checkpoint(stage: Stage) -> None:
    """Executed again from there with all answers from the record, each comes to the job's own
    timeline; and calls no model.
    """
    outcome, archive = await _recorded(stage)
    source = RunName(batch=stage.batch, job="job", run=outcome.run)
    before = timeline(archive, outcome.run)
    assert checkpoint_before(archive, outcome.run, TURNS) is not None
    turns = (9, 68)
    made = [
        await fork_job(
            stage,
            source,
            turn,
            f"fork-{turn}",
            reexecution(stage, "job", outcome.run, turn, frozen=True),
        )
        for turn in turns
    ]
    for turn, one in zip(turns, made, strict=True):
        ended = await outcome_of_reset(stage.client, one)
        forked = archive_of(stage, f"fork-{turn}")
        assert (ended.status, ended.turns, divergences(forked, ended.run)) == (
            JobStatus.SUCCEEDED,
            TURNS,
            [],
        )
        steps = list(forked.steps(ended.run))
        assert [step.ref for step in steps[: turn - 1]] == [
            step.ref for step in archive.steps(outcome.run)
        ][: turn - 1]
        assert {step.capture for step in steps[turn - 1 :]} == {Capture.REPLAYED}
        assert [came_to(step) for step in steps] == [
            came_to(step) for step in archive.steps(outcome.run)
        ]
        assert forked.end(ended.run).result == archive.end(outcome.run).result
        assert sound(forked)
    assert timeline(archive, outcome.run) == before
    # Turn 68 begins at the checkpoint of turn 64: what is before it is not even looked up.
    handle = stage.client.get_workflow_handle(stage.started[-1], run_id=made[-1].run)
    looked_up = [
        name for name in activities_of(await handle.fetch_history()) if name.startswith("recorded-")
    ]
    assert looked_up[0] == "recorded-65"
    await _a_fork_goes_on_from_a_checkpoint_before_a_damaged_one(stage, source)
    await _resets_go_back_through_continued_runs(stage, outcome, archive)


class _Harmed:
    """A store in which one object is cut short."""

    def __init__(self, store: ObjectStore, harmed: str) -> None:
        self._store, self._harmed = store, harmed
        self.put_if_absent, self.list, self.folders = (
            store.put_if_absent,
            store.list,
            store.folders,
        )

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``."""
        return self._store.get(key)[: -1 if key == self._harmed else None]

    def __str__(self) -> str:
        return str(self._store)


async def _a_fork_goes_on_from_a_checkpoint_before_a_damaged_one(
    stage: Stage, source: RunName
) -> None:
    """It restores the turns behind that one, and comes to the same."""
    archive = JobArchive.of(stage.store, source)
    newest = checkpoint_before(archive, source.run, TURNS)
    assert newest is not None
    harmed = _Harmed(stage.store, newest.ref.key)
    older = checkpoint_before(JobArchive.of(harmed, source), source.run, TURNS)
    assert older is not None and older.turn < newest.turn
    order = reexecution(stage, "job", source.run, 69, frozen=True)
    made = await fork_job(stage, source, 69, "fork-69", order, store=harmed)
    ended = await outcome_of_reset(stage.client, made)
    forked = archive_of(stage, "fork-69")
    assert (ended.status, ended.turns, divergences(forked, ended.run)) == (
        JobStatus.SUCCEEDED,
        TURNS,
        [],
    )
    handle = stage.client.get_workflow_handle(stage.started[-1], run_id=made.run)
    activities = activities_of(await handle.fetch_history())
    assert f"recorded-{older.turn + 1}" in activities


async def _resets_go_back_through_continued_runs(
    stage: Stage, outcome: JobOutcome, archive: JobArchive
) -> None:
    """To a turn of an earlier run of the chain, to the first turn after a checkpoint, and to the
    first of a run that went on.
    """
    first = archive.runs()[0]
    begins = next(step.turn for step in archive.steps(outcome.run) if step.run != first)
    for start in (58, 65, begins):
        ended, found = await replayed(
            stage, "job", reexecution(stage, "job", outcome.run, start, frozen=True)
        )
        assert (ended.status, ended.turns, found) == (JobStatus.SUCCEEDED, TURNS, [])
        assert ended.taken_back and not outcome.taken_back
        steps = list(archive.steps(ended.run))
        assert [step.turn for step in steps] == list(range(1, TURNS + 1))
        assert {step.run for step in steps[:4]} == {first}
        assert {step.capture for step in steps[start - 1 :]} == {Capture.REPLAYED}
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")


async def test_a_run_that_temporal_forgot_can_be_forked_and_not_reset(stage: Stage) -> None:
    """The reset says what to do instead, and changes nothing; the fork asks the model anew from N
    on.
    """
    outcome, archive = await stage.run(["n = 1", "n += 1", "n += 1", "finish(n)"], id="job")
    await forgotten(stage.client, stage.started.pop(), outcome.run)
    with pytest.raises(NotFound, match=r"fork .*job@3 --as ID"):
        await reset_job(stage, "job", rerun(stage, "job", outcome.run, 3))
    assert list(archive.store.list(f"{archive.prefix}/replays/")) == []
    source = RunName(batch=stage.batch, job="job", run=outcome.run)
    order = rerun(stage, "job", outcome.run, 3, statement="n = 40")
    ended = await outcome_of_reset(stage.client, await fork_job(stage, source, 3, "other", order))
    forked = archive_of(stage, "other")
    assert (ended.status, forked.end(ended.run).result) == (JobStatus.SUCCEEDED, 40)
    assert [step.capture for step in forked.steps(ended.run)][1:3] == [
        Capture.HANDED_OVER,
        Capture.EDITED,
    ]
    assert sound(forked)
    with pytest.raises(InputError, match=r"there is a job .*other already"):
        await fork_job(stage, source, 2, "other", rerun(stage, "job", outcome.run, 2))
    for turn in (0, 6):
        with pytest.raises(NotFound, match=rf"no statement {turn}: they are numbered 1 to 4"):
            await fork_job(stage, source, turn, "more", rerun(stage, "job", outcome.run, 3))
    key = JobKey(batch=stage.batch, job="other")
    with pytest.raises(InputError, match=r"from which .*other was forked"):
        await reset_job(stage, key.job, rerun(stage, "other", ended.run, 2))


async def _by_rules_of_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, statements: list[str], **options: Any
) -> tuple[JobOutcome, JobArchive]:
    """Run a job by the oldest rules."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        return await stage.run(statements, id="job", **options)


async def _forked(stage: Stage, order: ReplayOrder) -> tuple[JobOutcome, JobArchive]:
    """Run the fork that ``order`` makes of a run of that job."""
    assert order.source is not None
    made = await fork_job(stage, order.source, order.start, "other", order)
    return await outcome_of_reset(stage.client, made), archive_of(stage, "other")


async def test_a_fork_of_a_job_of_before_has_what_its_statements_came_to(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is restored by the rules that it went by, and the first of the fork's own goes by those
    of today.
    """
    statements = [
        "a = view('a.py', tokens=100)\nprint(a.text)\nprint(round(2.675, 2))",
        "class Pile:\n    def __len__(self):\n        return 0\np = Pile()\nprint(p)",
        "a.SetTokens(90)\ntext = open('a.py').read()\nprint('empty' if not p else 'true')",
        "print(list(map(note, ['b'])))",
        "finish(['empty' if not p else 'true', text, round(2.675, 2)])",
    ]
    (stage.workspace / "a.py").write_text("x = 1\n")
    outcome, archive = await _by_rules_of_before(stage, monkeypatch, statements)
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == ["true", "x = 1\n", 2.68]
    (stage.workspace / "a.py").write_text("x = 2\n")
    forked, other = await _forked(stage, rerun(stage, "job", outcome.run, 5))
    assert (forked.status, forked.reason, forked.turns) == (JobStatus.SUCCEEDED, "finished", 5)
    told = other.end(forked.run)
    assert told is not None
    # The class is of before, what is rounded is rounded by today's rules.
    assert told.result == ["true", "x = 1\n", 2.67]
    assert sound(other)


async def test_a_fork_of_a_job_of_before_asks_for_what_its_statements_asked_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where today's rules would have one ask for something of another kind."""
    statements = [
        "n = 1",
        "a = view('a.py') if round(2.675, 2) == 2.67 else open('a.py').read()",
        "finish(a)",
    ]
    (stage.workspace / "a.py").write_text("x = 1\n")
    outcome, _ = await _by_rules_of_before(stage, monkeypatch, statements)
    forked, other = await _forked(stage, rerun(stage, "job", outcome.run, 3))
    assert (forked.status, forked.reason, forked.turns) == (JobStatus.SUCCEEDED, "finished", 3)
    told = other.end(forked.run)
    assert told is not None and told.result == "x = 1\n"


@pytest.mark.parametrize(
    "call",
    [
        "view('a.py', tokens=50).text",
        "first.Refresh()",
        "open('b.py').read()",
        "open('b.py', 'w').write('')",
        "told(1)",
        "spawn('Go.')",
    ],
)
async def test_a_call_that_a_frozen_record_has_not_gets_no_result(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Not that of the call which the record has in its place: by today's rules a job of before
    makes another.
    """
    (stage.workspace / "a.py").write_text("x = 1\n")
    (stage.workspace / "b.py").write_text("x = 2\n")
    (stage.path / "other_tools.py").write_text(TOOL)
    statements = [
        "first = view('a.py', tokens=100)",
        f"try:\n    got = str({call}) if round(2.675, 2) == 2.67 else open('a.py').read()\n"
        "except RuntimeError as error:\n    got = str(error)",
        "finish(got)",
    ]
    outcome, _ = await _by_rules_of_before(
        stage,
        monkeypatch,
        statements,
        tools=(describe_tool("other_tools:told", str(stage.path)),),
        writable=Writable(sandbox="none"),
        spawn=Spawn(model=ModelSettings(name=stage.script(["finish('went')"]))),
    )
    order = reexecution(stage, "job", outcome.run, 2, frozen=True)
    forked, other = await _forked(stage, order)
    told = other.end(forked.run)
    assert told is not None and sound(other)
    assert told.result == "the record has no result for this call, and a frozen replay makes none"
    assert next(one.aspect for one in divergences(other, forked.run)) is Aspect.EFFECT_CALL


async def test_a_fork_of_a_job_of_before_has_what_its_statements_started(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, by whichever rules a statement is tried before."""
    model = ModelSettings(name=stage.script(["finish('went')"]))
    statements = [
        "child = spawn('Go.')\nprint(round(2.675, 2))",
        "wait_for(child)",
        "finish(child.text)",
    ]
    outcome, _ = await _by_rules_of_before(stage, monkeypatch, statements, spawn=Spawn(model=model))
    forked, other = await _forked(stage, rerun(stage, "job", outcome.run, 3))
    assert (forked.status, forked.reason, forked.turns) == (JobStatus.SUCCEEDED, "finished", 3)
    told = other.end(forked.run)
    assert told is not None and "went" in told.result
