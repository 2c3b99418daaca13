"""A reset whose connection is broken off, as a server does of itself after some minutes."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from runtime.base.values import JobKey
from runtime.client import resets
from runtime.client.resets import outcome_of_reset, reset
from runtime.job.stops import JobStatus
from tests.replay.replays import rerun
from tests.replay.timelines import replay_runs
from tests.servers.relay import Relay
from tests.servers.temporal_server import CONVERTER
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_it_is_ordered_again_and_made_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, archive = await stage.run(["n = 1", "finish(n)"], id="job")
    order = rerun(stage, "job", first.run, 2)
    async with Relay(stage.client.service_client.config.target_host).open() as relay:
        client = await Client.connect(relay.address, data_converter=CONVERTER)
        # Just before the request of the reset itself.
        monkeypatch.setattr(
            resets, "failpoint", lambda name: relay.sever() if name == "reset.before" else None
        )
        made = await reset(client, stage.store, JobKey(batch=stage.batch, job="job"), order)
    assert relay.severed == 1
    outcome = await outcome_of_reset(stage.client, made)
    assert (outcome.status, outcome.run) == (JobStatus.SUCCEEDED, made.run)
    assert sorted(archive.runs()) == sorted([first.run, made.run])
    assert await replay_runs(stage.client, stage, "job") == 2
