"""Forks of a job whose last statement is in the midst of an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.record import RunName
from runtime.archive.job import JobArchive
from runtime.archive.verify import damage, verify_job
from runtime.base.spec.models import ToolSpec
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from tests.eventually import eventually
from tests.gated_tools import TOOLS
from tests.replay.replays import fork_job, reexecution, replayed, rerun
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

PAYS = """
got = look('first')
try:
    got += pay('ann')
except OutcomeUnknown:
    got += ' unknown'
"""


def _tools(stage: Stage) -> tuple[ToolSpec, ...]:
    (stage.path / "midst_tools.py").write_text(TOOLS)
    return tuple(describe_tool(f"midst_tools:{name}", str(stage.path)) for name in ("pay", "look"))


def _ran(path: Path) -> list[str]:
    return (path / "ran").read_text().split() if (path / "ran").exists() else []


def _newest(stage: Stage, archive: JobArchive) -> RunName:
    return RunName(batch=stage.batch, job=archive.job.job, run=archive.runs()[-1])


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_fork_goes_on_with_the_statement(stage: Stage, cancelled: bool) -> None:
    """What the statement did is not done again, what was under way is as its tool says; the job
    that it is a fork of is left as it is. The fork's own record is executed again as it is.
    """
    spec = stage.spec(["x = 1", PAYS, "finish(got)"], id="job", tools=_tools(stage))
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    await eventually(lambda: len(_ran(stage.path)) == 2, "the call")
    if cancelled:
        await handle.cancel()
        assert (await handle.result()).status is JobStatus.CANCELLED
    source = _newest(stage, archive)
    made = await fork_job(
        stage, source, 3, "fork", rerun(stage, "job", source.run, 3, message="go on")
    )
    forked = await outcome_of_reset(stage.client, made)
    assert (forked.status, forked.turns) == (JobStatus.SUCCEEDED, 3)
    other = JobArchive(stage.store, stage.batch, "fork")
    assert other.end(forked.run).result == "first unknown"
    assert _ran(stage.path) == ["first", "ann"]
    if not cancelled:
        (stage.path / "gate").write_text("")
        assert (await handle.result()).status is JobStatus.SUCCEEDED
        assert archive.end(source.run).result == "firstann"
    for one in (archive, other):
        assert list(damage(verify_job(one))) == []
    again, differences = await replayed(
        stage, "fork", reexecution(stage, "fork", forked.run, 2, frozen=True)
    )
    assert (again.status, differences) == (JobStatus.SUCCEEDED, [])
