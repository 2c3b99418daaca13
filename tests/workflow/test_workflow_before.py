"""Jobs that a build of before began: what a patch has changed since is as it was for them."""

from __future__ import annotations

from typing import Any

import pytest
from stage import Stage, events_of
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.spec.models import BatchBudget, Budget, ModelSettings, Spawn
from runtime.base.workflow_ids import job_workflow_id
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from workflows import job

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

INDENTS = """
import textwrap
try:
    made = len(textwrap.indent('a\\n' * 2000, 'x' * 2000))
except ValueError:
    made = 'too much'
finish(made)
"""

WRITES = """
from pathlib import Path
try:
    Path('t').write_text('a', encoding='utf-8')
except Exception as error:
    finish(str(error))
"""


NATURAL = """
import re
try:
    list(map(note, ['a']))
    finish(re.findall('a$', 'a\\n'))
except NameError as error:
    finish(str(error))
"""


FAITHFUL = """
class Pile:
    def __len__(self):
        return 0
finish('empty' if not Pile() else 'true')
"""


ALIKE = """
from re import findall
finish(findall('a$', 'a\\n'))
"""


async def test_a_job_of_before_has_what_functions_made_then(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has no mark of a patch, and replays; a job of today hears of the bound."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage) == 4_004_000
    assert await result(stage) == "too much"
    await stage.replay_all()


async def test_a_job_of_before_has_no_keywords_for_what_it_writes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has no call of the workspace there, and replays."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage, WRITES) == "write_text() takes exactly one argument (1 given)"
    assert await result(stage, WRITES) == "the workspace is read-only: 't'"
    await stage.replay_all()


async def test_a_job_of_before_has_no_functions_as_values(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has the error, and replays."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage, NATURAL) == "name 'note' is not defined"
    assert await result(stage, NATURAL) == ["a"]
    await stage.replay_all()


async def test_a_job_of_before_has_objects_that_are_all_true(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has what came of it, and replays."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage, FAITHFUL) == "true"
    assert await result(stage, FAITHFUL) == "empty"
    await stage.replay_all()


async def test_a_job_of_before_has_another_re_by_another_name(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has what came of it, and replays."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage, ALIKE) == []
    assert await result(stage, ALIKE) == ["a"]
    await stage.replay_all()


async def test_a_run_is_marked_as_it_begins_alone(
    monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    """A checkpoint asks for a patch: behind an activity within the worker, where a replay of a task
    that was cut does not know the marks that follow.
    """
    monkeypatch.setattr(job, "CHECKPOINT_TURNS", 2)
    await stage.run(["x = 1", "x = 2", "finish(x)"])
    history = await stage.history()
    marks = events_of(history, "MARKER_RECORDED")
    names = [mark.marker_recorded_event_attributes.marker_name for mark in marks]
    assert [name == "core_patch" for name in names] == [True] + [False] * (len(names) - 1)
    first = events_of(history, "ACTIVITY_TASK_SCHEDULED")[0]
    assert marks[0].event_id < first.event_id
    await stage.replay_all()


async def result(stage: Stage, source: str = INDENTS) -> Any:
    """Of a job of its own."""
    outcome, archive = await stage.run([source])
    end = archive.end(outcome.run)
    assert end is not None
    return end.result


async def test_a_job_of_before_asks_its_batch_for_a_sub_job_beside_summaries(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though what they may spend is not there to be lent: it held nothing for them then."""
    for name in "abc":
        (stage.workspace / f"{name}.py").write_text(f"def {name}(): return 1\n")
    writer = stage.path / "writer.py"
    writer.write_text("def respond(messages): return {'delay': 600, 'text': ''}")
    child = ModelSettings(name=stage.script(["finish(1)"]))
    lends = Spawn(turns=14, tokens=10**9, usd=1.0, model=child)
    order = stage.order(
        [
            "\n".join(f"{name} = view('{name}.py', lod=2, tokens=300)" for name in "abc"),
            "s = spawn('Count.')\nwait_for(s)",
            "finish(s.text)",
        ],
        spawn=lends,
        summary_model=ModelSettings(name=f"scripted/{writer}"),
        budget=Budget(turns=20, tokens=10**6, usd=100.0),
    )
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        handle = await stage.submit(order, concurrency=2, budget=BatchBudget(turns=60))
        stage.started.append(job_workflow_id(order.key))

        async def spawns() -> bool:
            try:
                return "spawn_job" in asked_for(await stage.history())
            except RPCError as error:
                # The batch has the job, and has not started it yet.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                return False

        await eventually(spawns, "the job starts its sub-job")
        asked = asked_for(await stage.history())
        assert asked[: asked.index("spawn_job")].count("ask") == 1
        state = await handle.result()
    assert state.ended == {order.key.job: JobStatus.SUCCEEDED}
    await stage.replay_all()


def asked_for(history: WorkflowHistory) -> list[str]:
    """What a job asked for, in order: kinds of activities, and what it signalled to others."""
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        or event.signal_external_workflow_execution_initiated_event_attributes.signal_name
        for event in history.events
    ]
