"""Two workers at the same turn: both get the reply of the one that was first, and nothing is lost
or overwritten.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server

from activities.model import ModelActivities, warm
from runtime.archive.findings import Fault
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from tests.eventually import SECONDS
from tests.model.model_calls import RUN, Job, attempt, model_at, openai_server

WORKERS, TURNS = 2, 5


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.s3)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "directory":
        return str(tmp_path / "archive")
    request.getfixturevalue("aws")
    server: S3Server = request.getfixturevalue("s3_server")
    return server.url(uuid.uuid4().hex)


@pytest.mark.slow
async def test_two_workers_race_on_every_turn(url: str) -> None:
    """Each calls the model and archives its attempt; one step stands, both return it, and the next
    turn goes on from it.
    """
    await asyncio.to_thread(warm)
    together = asyncio.Barrier(WORKERS)
    # Who comes late would find the other's step, and call nothing.
    called = threading.Barrier(WORKERS, timeout=SECONDS)

    def respond(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        called.wait()
        return {"text": f"answer {number}", "code": f"x = {number}", "delay": 0.05 * (number % 2)}

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server), store=open_store(url))
        workers = [ModelActivities(open_store(url)) for _ in range(WORKERS)]

        async def work(worker: ModelActivities, number: int, call: Any) -> Any:
            await together.wait()
            return await attempt(number).run(worker.call_model, call)

        for turn in range(1, TURNS + 1):
            call = job.call()
            replies = await asyncio.gather(
                *(work(worker, n, call) for n, worker in enumerate(workers, 1))
            )
            assert replies[0] == replies[1]
            # The job goes on from the step that stands, which this asks for without a call.
            assert (await job.take_turn()).step == replies[0].step
            assert len(server.exchanges) == WORKERS * turn
    archive = Job(job.model, store=open_store(url)).archive
    for turn in range(1, TURNS + 1):
        tried = archive.attempts(RUN, turn)
        assert [a.number for a in tried] == list(range(1, WORKERS + 1))
        step = archive.find_step(RUN, turn)
        assert step is not None
        assert step.attempt.key in {a.key for a in tried}
        assert archive.wire_response(RUN, turn) in {e.response for e in server.exchanges}
    findings = verify_job(archive, [job.parent] if job.parent else [])
    assert damage(findings) == []
    # The replies that lost the last race are named by nothing yet.
    assert {(finding.fault, finding.turn) for finding in findings} <= {(Fault.UNCOVERED, TURNS)}
    lost = [
        archive.exchange(a.key) for turn in range(1, TURNS + 1) for a in archive.attempts(RUN, turn)
    ]
    assert sum(exchange is not None for exchange in lost) == TURNS
