"""What earlier releases left behind works with the code of today: their histories, and their
archives.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import activities.build as build_module
from activities.build import ROOMS, code_digest, this_build
from activities.record import ReplayOrder, RunName
from runtime.archive.catalog import all_jobs
from runtime.archive.container import unseal
from runtime.archive.export import export_lines
from runtime.archive.export_forms import Delta
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_existing
from runtime.archive.verify import damage, verify_job
from runtime.cli.main import main
from runtime.cli.output import JSON_VERSION
from runtime.client.forks import ForkPoint, forks
from runtime.client.resets import outcome_of_reset
from runtime.job import replay_version
from runtime.job.checkpoint import INTERPRETER
from runtime.job.replay_version import replays
from runtime.job.stops import JobStatus
from tests.releases import record as recording
from tests.releases.record import MOST_BYTES, Release, release_name, releases
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage, replayer

RELEASES = releases()
KINDS = {
    "attempt",
    "checkpoint",
    "claim",
    "definition",
    "effect",
    "end",
    "exchange",
    "failure",
    "replay",
    "run",
    "step",
}


def test_this_release_is_there() -> None:
    """Each release has its material, which is small enough to keep for ever; the recorder touches
    none that is there.
    """
    assert release_name() in [release.name for release in RELEASES], (
        "python -m tests.releases.record"
    )
    for release in RELEASES:
        assert sum(path.stat().st_size for path in release.path.iterdir()) <= MOST_BYTES
    before = {path: path.read_bytes() for path in RELEASES[-1].path.iterdir()}
    with pytest.raises(SystemExit, match="a release's material is kept as it was"):
        recording.main()
    assert {path: path.read_bytes() for path in RELEASES[-1].path.iterdir()} == before


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
async def test_histories_replay_or_are_refused_by_name(release: Release) -> None:
    """A history replays as long as its replay version is accepted; else the message names its
    build.
    """
    build = release.build
    names = [name for name, _ in release.histories()]
    assert len(names) > 10
    for name, history in release.histories():
        if build.interpreter != INTERPRETER and name != "batch-1":
            with pytest.raises(Exception, match=f"began with {build.interpreter}"):
                await replayer().replay_workflow(history)
        elif not replays(build.replay_version) and name != "batch-1":
            with pytest.raises(Exception, match=f"began with build {build.id}"):
                await replayer().replay_workflow(history)
        else:
            try:
                await replayer().replay_workflow(history)
            except Exception as error:
                raise AssertionError(
                    f"{name} of release {release.name} does not replay: raise REPLAY_VERSION or use"
                    f" patched of workflows/patches.py (docs/releases.md); this is build {this_build().id}"
                ) from error


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_archives_are_read_and_whole(release: Release, tmp_path: Path) -> None:
    """Every job of every archive is verified without a finding, and every run of it can be
    exported; each kind of object is there.
    """
    kinds = set()
    for place in release.unpack(tmp_path):
        store = open_existing(str(place))
        jobs = all_jobs(store)
        assert jobs, place.name
        for job in jobs:
            archive = JobArchive.of(store, job)
            assert damage(verify_job(archive)) == [], (place.name, str(job))
            for run in archive.runs():
                assert "damaged" not in {
                    line["type"] for line in export_lines(archive, run, form=Delta)
                }
            kinds |= {
                unseal(key, store.get(key)).header["kind"]
                for key in store.list(f"{archive.prefix}/")
            }
    assert kinds == KINDS


@pytest.mark.server
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
async def test_jobs_fork_from_archives(release: Release, tmp_path: Path) -> None:
    """The recorded turns of a job are restored by the code of today, and it goes on from there."""
    (tmp_path / "archives").mkdir()
    (tmp_path / "stage").mkdir()
    (place,) = (place for place in release.unpack(tmp_path / "archives") if place.name == "simple")
    async with temporal_server() as environment:
        stage = Stage(environment.client, tmp_path / "stage", "releases")
        stage.store = open_existing(str(place))
        (job,) = all_jobs(stage.store)
        (run,) = JobArchive.of(stage.store, job).runs()
        last = max(step.turn for step in JobArchive.of(stage.store, job).steps(run))
        source = RunName(batch=job.batch, job=job.job, run=run)
        order = ReplayOrder(id=uuid.uuid4().hex, start=last, statement="finish('on from there')")
        async with stage.open():
            (made,) = await forks(
                stage.client, stage.store, ForkPoint(source, last), {"forked": order}, stage.queue
            )
            outcome = await outcome_of_reset(stage.client, made)
        assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, last)
        forked = JobArchive(stage.store, job.batch, "forked")
        assert damage(verify_job(forked)) == []


async def test_a_history_of_another_replay_version_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails its task, and says which build began it, and what to do."""
    histories = dict(RELEASES[-1].histories())
    build = RELEASES[-1].build
    monkeypatch.setattr(replay_version, "REPLAY_VERSION", build.replay_version + 1)
    for name in ("simple-1", "continued-2"):
        with pytest.raises(Exception, match="take it to where it continues as new") as refused:
            await replayer().replay_workflow(histories[name])
        assert build.id in str(refused.value)
    monkeypatch.setattr(replay_version, "COMPATIBLE", frozenset({build.replay_version}))
    await replayer().replay_workflow(histories["simple-1"])


def test_the_build_covers_all_that_workflow_code_is_made_of() -> None:
    """Each module that the workflows import is in the digest; a changed line of one is another
    build.
    """
    script = (
        "import sys, workflows.job, workflows.batch, json; print(json.dumps([getattr(m, '__file__',"
        " None) for n, m in sys.modules.items() if n.split('.')[0] in ('workflows', 'runtime',"
        " 'activities')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    root = Path(build_module.__file__).parent.parent
    files = {Path(name).relative_to(root).as_posix() for name in json.loads(done.stdout) if name}
    missing = {
        name
        for name in files
        if not any(name == room or name.startswith(f"{room}/") for room in ROOMS)
    }
    assert {name for name in missing if (root / name).stat().st_size > 200} == set()


def test_the_build_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version --json``, in either order."""
    for arguments in (["--version", "--json"], ["--json", "--version"]):
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out) == this_build().model_dump(mode="json") | {
            "json": JSON_VERSION
        }
    assert this_build().id.endswith(code_digest())
