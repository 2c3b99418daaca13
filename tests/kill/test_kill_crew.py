"""A worker of several processes: whichever is killed, nothing is lost and nothing is left
behind.

Two are started as a user does; the others, which are about what comes after that, are forked.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.worker import crew
from runtime.worker.crew import Crew, fitting_size
from runtime.worker.nursery import NURSERY, WORKER, Nursery
from tests.forks.crew import begun_by_fork
from tests.kill.nursery import forked
from tests.kill.processes import DEADLINE, Launch, holdfast, name_of, processes_in, wait_for

pytestmark = pytest.mark.kill

JOBS = 8
POLICY = """
import time
from pathlib import Path

HELD = Path(__file__).with_name("held")

def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    time.sleep(0.2)
    while turn == 4 and "Count 1." not in str(messages) and HELD.exists():
        time.sleep(0.05)
    return {"code": "finish(1)" if turn == 4 else f"turn = {turn}"}
"""
"""While the file ``held`` is there, no job but the first ends."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a batch; its server is gone after the test."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "jobs.yaml").write_text(
        f"batch: crew\nconcurrency: 4\njobs:\n- id: 'j{{n}}'\n  count: {JOBS}\n  goal: Count {{n}}.\n"
        "  workspace: ws\n  model: scripted/policy.py\n"
    )
    yield tmp_path
    forked(tmp_path, ["down"], tmp_path / "down", {}).wait(DEADLINE)


def members(home: Path) -> set[int]:
    """The processes of the crew."""
    return _called(WORKER, home)


def nurseries(home: Path) -> set[int]:
    """What these are forked from."""
    return _called(NURSERY, home)


def _called(name: str, home: Path) -> set[int]:
    # All of them are where their command was given; a forked one's environment cannot be seen.
    return {pid for pid in processes_in(home) if name_of(pid) == name}


def ends(home: Path) -> int:
    """How many jobs have ended, as the archive has it."""
    return len(list((home / "archive").glob("crew/*/ends/*")))


def test_a_process_that_is_killed_is_started_again_and_no_turn_is_lost(place: Path) -> None:
    """``run --workers 3``: all three are killed in mid-batch. All jobs succeed, each with
    one run and four turns.
    """
    (place / "held").touch()
    run = forked(place, ["run", "jobs.yaml", "--workers", "3", "--json"], place / "run", {})
    wait_for(lambda: ends(place) > 0 and len(members(place)) == 3, "they work", alive=run)
    killed = members(place)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(
        lambda: run.poll() is not None or len(members(place) - killed) == 3, "others are started"
    )
    (place / "held").unlink()
    assert run.wait(DEADLINE) == 0
    summary = json.loads((place / "run.out").read_text().splitlines()[-1])
    assert [(job["status"], job["turns"]) for job in summary["jobs"]] == [("succeeded", 4)] * JOBS
    assert len(list((place / "archive").glob("crew/*/runs/*"))) == JOBS
    assert members(place) == set()


def test_what_they_are_forked_from_is_killed_and_no_turn_is_lost(place: Path) -> None:
    """Its processes end with it, and others are started. It has one thread, so a fork copies all
    that it is.
    """
    (place / "held").touch()
    run = holdfast(place, ["run", "jobs.yaml", "--workers", "2", "--json"], place / "run", {})
    wait_for(lambda: ends(place) > 0 and len(members(place)) == 2, "they work", alive=run)
    killed = members(place)
    (nursery,) = nurseries(place)
    assert len(list(Path(f"/proc/{nursery}/task").iterdir())) == 1
    os.kill(nursery, signal.SIGKILL)
    wait_for(lambda: run.poll() is not None or not members(place) & killed, "they are killed")
    (place / "held").unlink()
    assert run.wait(DEADLINE) == 0
    summary = json.loads((place / "run.out").read_text().splitlines()[-1])
    assert [(job["status"], job["turns"]) for job in summary["jobs"]] == [("succeeded", 4)] * JOBS
    assert members(place) == nurseries(place) == set()


@pytest.mark.parametrize(("how", "launch"), [(signal.SIGKILL, holdfast), (signal.SIGTERM, forked)])
def test_all_processes_end_with_the_one_that_started_them(
    place: Path, how: signal.Signals, launch: Launch
) -> None:
    """Be it killed or told to stop; another worker goes on with the jobs."""
    run = forked(place, ["run", "jobs.yaml"], place / "run", {})
    worker = launch(place, ["worker", "--processes", "2"], place / "worker", {})
    wait_for(lambda: ends(place) > 0 and len(members(place)) == 2, "they work", alive=worker)
    os.kill(worker.pid, how)
    worker.wait(DEADLINE)
    wait_for(lambda: not members(place) | nurseries(place), "no process is left")
    assert run.wait(DEADLINE) == 0
    assert len(list((place / "archive").glob("crew/*/runs/*"))) == JOBS


def test_no_other_try_helps_a_process_that_is_given_bad_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The crew ends as its first process does, instead of starting it for ever."""
    monkeypatch.setattr(Nursery, "_started", begun_by_fork)
    told: list[str] = []
    assert asyncio.run(Crew(["worker", "--batch", "no name"], told.append).work(2)) == 2
    assert told[0].endswith("ended (exit code 2), and so would any other")


def test_a_run_whose_processes_refuse_their_input_ends(place: Path) -> None:
    """``run`` says so, with exit code 2, and what goes on with the jobs; it waited for ever."""
    # Each process of the crew would serve metrics at a port that is none.
    refused = {"HOLDFAST_METRICS": "127.0.0.1:65535"}
    run = forked(place, ["run", "jobs.yaml", "--workers", "2"], place / "run", refused)
    assert run.wait(DEADLINE) == 2
    told = (place / "run.err").read_text()
    assert "no worker is left" in told
    assert "to go on with them: holdfast run jobs.yaml" in told
    assert members(place) == set()
    again = forked(place, ["run", "jobs.yaml"], place / "again", {})
    assert again.wait(DEADLINE) == 0


def test_a_number_that_is_for_run_ends_no_worker(place: Path) -> None:
    """``HOLDFAST_PROCESSES=0``, by which ``run`` works in its own process, is none to ``worker``,
    which has as many as by default.
    """
    worker = forked(place, ["worker"], place / "worker", {"HOLDFAST_PROCESSES": "0"})
    told = place / "worker.err"
    wait_for(lambda: "waiting for batches" in told.read_text(), "it waits", alive=worker)
    worker.terminate()
    assert worker.wait(DEADLINE) == 0


def test_processes_are_as_many_as_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each core, of which the embedded server has a third; fewer for few jobs."""
    monkeypatch.setattr(crew, "_cores", lambda: 8)
    sizes = [fitting_size(jobs, shared=True) for jobs in (1, 99, 100, 250, 10_000)]
    assert sizes == [1, 1, 2, 3, 6]
    assert (fitting_size(shared=False), fitting_size(shared=True)) == (8, 6)
    for cores, size in ((1, 1), (2, 2), (4, 3)):
        monkeypatch.setattr(crew, "_cores", lambda cores=cores: cores)
        assert fitting_size(shared=True) == size
