"""The fleet of ``infra/local``: two hosts with workers by role, and what goes wrong there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.fleet import archives, batch, came_of, turns_of, wait_for
from infra.local.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A fleet that is up, to whose server and store this process is led."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "HOLDFAST_")):
            monkeypatch.delenv(name)
    made = Fleet.at(tmp_path / "fleet")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.mark.server
@pytest.mark.s3
@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.sandbox
def test_a_host_is_lost_and_comes_back(fleet: Fleet, tmp_path: Path) -> None:
    """With its network, where hosts have one, else with its processes; and the store is killed
    meanwhile. Each command of the job is carried out once, and nothing runs when all is down.
    """
    finish = batch(tmp_path, 1)
    (job,) = archives(1)
    wait_for(lambda: turns_of(job) > 0, "a turn is done")
    lost = [one for name, one in fleet.components.items() if name.startswith("one-")]
    if fleet.network is not None:
        fleet.network.cut("one")
    else:
        for one in lost:
            one.kill()
    fleet.components["s3"].kill()
    fleet.components["s3"].start()
    known = turns_of(job)
    wait_for(lambda: turns_of(job) > known, "the other host goes on")
    if fleet.network is not None:
        fleet.network.mend("one")
    for one in lost:
        one.start()
    finish()
    wait_for(lambda: job.end(job.runs()[-1]) is not None, "the job has ended")
    came = came_of(job)
    assert came.well
    assert came.lines > 0
    fleet.down()
    assert [name for name, one in fleet.components.items() if one.pid is not None] == []
