"""A worker killed around any durable write loses no finished turn, and the job's archive verifies
clean afterwards.
"""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import pytest
from s3_server import S3Server

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.verify import Fault, verify_job
from tests.forks.scripts import Scripts

_WORKER = """
import random, sys
from archive_jobs import Written, chat
from runtime.archive.job import JobArchive
from runtime.archive.forms import NewEnd
from runtime.archive.stores import open_store
archive = JobArchive(open_store(sys.argv[1]), "b", "j")
archive.write_definition({"goal": "g"})
written, parent = Written(archive), None
for turn in range(1, 7):
    step = archive.find_step("r", turn)
    if step is None:
        layout = chat(random.Random(turn))(turn, archive.layout(parent), archive.reply_segment(parent))
        attempt = written.begin("r", turn, parent, layout)
        print("called", turn, flush=True)
        parent = written.finish("r", turn, attempt, [{"obj_id": "n", "turn": turn}])
    else:
        parent = step.ref
    archive.write_effect("r", turn, 0, {"turn": turn})
archive.write_end(NewEnd(run="r", turn=6, parent=parent, status="succeeded"))
print("ended")
"""

_POINTS = [
    f"archive.{kind}.{when}_put"
    for kind in ("attempt", "step", "effect", "end")
    for when in ("before", "after")
]


def work(python: Scripts, url: str, **failpoint: str) -> tuple[int, list[str]]:
    """Run a worker over the job. Returns its exit code and what it printed."""
    done = python(_WORKER, url, **failpoint)
    assert done.code in {0, -signal.SIGKILL}, done.said
    return done.code, done.said.splitlines()


def check(url: str, printed: list[str]) -> None:
    """Six turns in order, no turn whose step was written called again, notes only of attempts that
    were not finished.
    """
    archive = JobArchive(open_store(url), "b", "j")
    assert [step.turn for step in archive.steps()] == [1, 2, 3, 4, 5, 6]
    assert [archive.effect("r", turn, 0) for turn in range(1, 7)] == [
        {"turn": turn} for turn in range(1, 7)
    ]
    assert archive.end("r") is not None
    assert {finding.fault for finding in verify_job(archive)} <= {Fault.UNCOVERED}
    assert len(printed) - len(set(printed)) <= 1, (
        "only a turn whose reply was lost may be called twice"
    )


@pytest.mark.kill
@pytest.mark.parametrize(
    "point", [*(f"{p}:3" if "end" not in p else p for p in _POINTS), "store.directory.mid_put:9"]
)
def test_a_kill_at_any_write_loses_nothing(python: Scripts, tmp_path: Path, point: str) -> None:
    """Killed before or after a write, and started again: the job ends as one that nobody killed."""
    url = str(tmp_path / "archive")
    killed, before = work(python, url, HOLDFAST_FAILPOINT=point)
    ended, after = work(python, url)
    assert (killed, ended) == (-signal.SIGKILL, 0)
    check(url, [line for line in before + after if line.startswith("called")])


@pytest.mark.kill
@pytest.mark.smoke
def test_a_kill_twice_in_a_row_loses_nothing(python: Scripts, tmp_path: Path) -> None:
    """Killed between attempt and step of the same turn twice: two unfinished attempts, and the job
    goes on.
    """
    url = str(tmp_path / "archive")
    for point in ("archive.step.before_put:2", "archive.step.before_put:1"):
        assert work(python, url, HOLDFAST_FAILPOINT=point)[0] == -signal.SIGKILL
    assert work(python, url)[0] == 0
    check(url, [])
    assert [a.number for a in JobArchive(open_store(url), "b", "j").attempts("r", 2)] == [1, 2, 3]


@pytest.mark.kill
def test_a_fail_point_can_be_set_to_fire_once(python: Scripts, tmp_path: Path) -> None:
    """With a file that remembers it, the same environment kills the first process and not the
    next.
    """
    url, once = str(tmp_path / "archive"), str(tmp_path / "once")
    environment = {
        "HOLDFAST_FAILPOINT": "archive.step.after_put:2",
        "HOLDFAST_FAILPOINT_ONCE": once,
    }
    assert [work(python, url, **environment)[0] for _ in range(2)] == [-signal.SIGKILL, 0]
    check(url, [])


@pytest.mark.kill
@pytest.mark.s3
@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    "point", ["archive.attempt.after_put:2", "archive.step.before_put:3", "store.s3.before_put:9"]
)
def test_a_kill_loses_nothing_on_s3(python: Scripts, s3_server: S3Server, point: str) -> None:
    """The same on a real S3 server."""
    url = s3_server.url(uuid.uuid4().hex)
    assert work(python, url, HOLDFAST_FAILPOINT=point)[0] == -signal.SIGKILL
    assert work(python, url)[0] == 0
    check(url, [])
