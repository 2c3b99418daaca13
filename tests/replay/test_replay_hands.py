"""Going back in a job that changes its workspace: its files are those of the statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from activities.record import RunName
from runtime.archive.divergences import divergences
from runtime.archive.job import JobArchive
from runtime.archive.trees import Trees
from runtime.archive.workspaces import opening_of, workspace_after
from runtime.base.spec.models import Writable
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from runtime.projection.segments import SegmentKind
from tests.replay.replays import fork_job, frozen_again, reexecution, replayed
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage

pytestmark = [
    pytest.mark.server,
    pytest.mark.sandbox,
    pytest.mark.asyncio(loop_scope="session"),
]

MOVES = [
    "write(f'd{n}.txt', str(n) * 9)\nn += 1",
    "print(sh(f'echo {n} >> log; wc -l < log').stdout)\nn += 1",
    "edit('log', open('log').read().splitlines()[-1] + '\\n', 'edited\\n')\nn += 1",
    "v = view('log').Run()\nsh('mkdir -p deep/er; cp log deep/er; chmod 600 deep/er/log')\nn += 1",
    "move('deep', f'deep{n}')\nn += 1\n1 / 0",
    "delete('log')\nn += 1",
]


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


def statements(turns: int) -> list[str]:
    """A job of so many turns: every kind of change, again and again."""
    moves = (MOVES[turn % len(MOVES)] for turn in range(turns - 2))
    return ["n = 0\nwrite('log', '')", *moves, "finish(n)"]


def versions(archive: JobArchive, run: str, turns: int) -> list[str]:
    """The version before the first turn, and after each."""
    return [workspace_after(archive, run, turn) for turn in range(turns + 1)]


async def recorded(stage: Stage, turns: int, **writable: object) -> tuple[str, list[str]]:
    """A job's run, and its versions."""
    (stage.workspace / "a.txt").write_text("a\n")
    outcome, archive = await stage.run(
        statements(turns),
        id="job",
        turns=turns + 9,
        writable=Writable(**writable),  # type: ignore[arg-type]
    )
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, turns)
    found = versions(archive, outcome.run, turns)
    assert len(set(found)) > turns * 2 // 3
    return outcome.run, found


def told(archive: JobArchive, run: str, turns: int) -> list[str]:
    """Which statement each prompt's feed says that a file was changed by, or is gone since."""
    return [
        f"{turn}: {found[0]}"
        for turn in range(1, turns + 1)
        for segment in archive.turn_layout(run, turn)
        if segment.kind is SegmentKind.DELTA
        for found in re.finditer(r"\w+ turn \d+'s statement", segment.text)
    ]


@pytest.mark.parametrize(
    ("tracking", "starts"), [("found", range(1, 15)), ("copied", (1, 6, 9))], indirect=["tracking"]
)
@pytest.mark.usefixtures("tracking")
async def test_back_at_each_statement_its_files_are_there(
    stage: Stage, starts: Sequence[int]
) -> None:
    """Executed again from each statement on, each comes to the files that it came to before, and
    the next prompt names the same statements.
    """
    turns = 14
    run, before = await recorded(stage, turns)
    archive = archive_of(stage, "job")
    named = told(archive, run, turns)
    assert named == [
        "8: since turn 7's statement",
        "10: by turn 9's statement",
        "11: by turn 10's statement",
        "14: by turn 13's statement",
        "14: since turn 13's statement",
    ]
    for start in starts:
        outcome, found = await replayed(stage, "job", reexecution(stage, "job", run, start))
        assert [one.line() for one in found] == [], start
        assert versions(archive, outcome.run, turns) == before, start
        assert told(archive, outcome.run, turns) == named, start
    assert sound(archive)
    await replay_runs(stage.client, stage, "job", every=5)


async def test_a_frozen_replay_runs_no_command(stage: Stage, tmp_path: Path) -> None:
    """Its answers, and so its versions, are those of the record; from the first statement on
    too.
    """
    ran = tmp_path / "ran"
    code = [
        f"r = sh('echo x >> {ran}; echo $RANDOM | tee r')\nv = view(r.stdout)",
        "print(open('r').read(), v.text)",
        "w = view(r, pos='-1')\nfinish([w.text, v.text, open('r').read()])",
    ]
    spec = stage.spec(code, id="job", writable=Writable(sandbox="none"))
    outcome = await (await stage.start(spec)).result()
    archive = archive_of(stage, "job")
    before = versions(archive, outcome.run, 3)
    for start in (1, 2):
        order = reexecution(stage, "job", outcome.run, start, frozen=True)
        again, found = await replayed(stage, "job", order)
        assert ([one.line() for one in found], again.status) == ([], JobStatus.SUCCEEDED)
        assert versions(archive, again.run, 3) == before
        assert archive.end(again.run).result == archive.end(outcome.run).result
        assert sound(archive)
    # Another job, with nothing but the record; the directory is another by now.
    (stage.workspace / "later").write_text("1")
    # Of the first run nothing is in the timeline of one that was reset to its first statement.
    first, _ = await replayed(stage, "job", reexecution(stage, "job", outcome.run, 1, frozen=True))
    assert opening_of(archive, first.run) == opening_of(archive, outcome.run) is not None
    whole, other = await frozen_again(stage, spec, first.run)
    assert versions(other, whole.run, 3) == before
    shown, viewed, read = other.end(whole.run).result
    assert shown == viewed == read.strip()
    assert ran.read_text() == "x\n"


async def test_runs_and_forks_carry_the_version(stage: Stage) -> None:
    """A job in many runs is at the versions of one; a fork begins with the files of its turn."""
    turns = 40
    run, before = await recorded(stage, turns)
    archive = archive_of(stage, "job")
    assert len(archive.runs()) > 1
    source = RunName(batch=stage.batch, job="job", run=run)
    for turn in (3, 38):
        order = reexecution(stage, "job", run, turn)
        made = await fork_job(stage, source, turn, f"fork-{turn}", order)
        ended = await outcome_of_reset(stage.client, made)
        forked = archive_of(stage, f"fork-{turn}")
        assert (ended.status, divergences(forked, ended.run)) == (JobStatus.SUCCEEDED, [])
        assert versions(forked, ended.run, turns)[turn - 1 :] == before[turn - 1 :]
        assert sound(forked)
    trees = Trees(stage.store)
    assert [trees.tree(version).version for version in before] == before
