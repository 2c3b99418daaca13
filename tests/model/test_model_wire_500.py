"""Five hundred calls of each protocol: what the archive holds is what the server received and sent,
byte for byte.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_calls import RUN, Job, anthropic_server, attempt, model_at, openai_server
from temporalio.exceptions import ApplicationError

from runtime.archive.forms import Capture
from runtime.archive.requests import RequestReader
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from tests.servers.provider_server import Exchange, Policy, ProviderServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("litellm")]

JOBS, TURNS = 20, 25
PATIENCE_S = 300
THINKING = (
    {"type": "thinking", "thinking": "First ünd last.\n\U0001f642", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
)
TROUBLES: tuple[dict[str, Any], ...] = (
    {"break_after": 30},
    {"error_after": 20},
    {"end_after": 25},
    {"fail": {"status": 429, "message": "Slow down.", "retry_after": 0}},
    {"fail": {"status": 503, "message": "Overloaded."}},
)
"""What goes wrong at the first request of a turn; the second one is answered."""


def policy(messages: list[dict[str, Any]], _number: int) -> dict[str, Any]:
    """A reply by what was asked: text, calls and thinking in any mixture, every fifth time with
    trouble first.
    """
    rng = random.Random(repr(messages))
    reply: dict[str, Any] = {
        "text": "".join(rng.choices('abc é世\n"\\</>\U0001f642', k=rng.randrange(20, 300)))
    }
    if rng.random() < 0.7:
        reply["code"] = f"x = {rng.random()}\nprint('ä', x)"
    if rng.random() < 0.5:
        reply["blocks"] = THINKING
    return {**reply, **(rng.choice(TROUBLES) if rng.random() < 0.2 else {})}


@pytest.mark.parametrize("make", [openai_server, anthropic_server], ids=["openai", "anthropic"])
async def test_five_hundred_calls_are_archived_exactly(
    make: Callable[[Policy], ProviderServer], tmp_path: Path
) -> None:
    """Streams and whole replies, tool calls, thinking, errors before and in mid-stream: every
    request, every response.
    """
    store = open_store(str(tmp_path / "archive"))
    async with make(policy).serving() as server:
        jobs = [
            # What starves this process starves its server, which then accepts nobody for long.
            Job(
                model_at(server, stream=n % 4 != 0, user=f"u{n}", connect=PATIENCE_S),
                store=store,
                name=f"job-{n}",
            )
            for n in range(JOBS)
        ]
        failed = sum(await asyncio.gather(*(turns_of(job) for job in jobs)))
    sent: dict[bytes, list[Exchange]] = defaultdict(list)
    for exchange in server.exchanges:
        sent[exchange.request].append(exchange)
    assert len(server.exchanges) == JOBS * TURNS + failed
    assert failed > JOBS * TURNS / 20
    for job in jobs:
        check(job, sent)
    assert not any(sent.values())


async def turns_of(job: Job) -> int:
    """Take the job's turns, trying again what fails, as Temporal does.

    Returns how many attempts failed.
    """
    failed = 0
    for turn in range(1, TURNS + 1):
        try:
            await job.take_turn()
        except ApplicationError as error:
            assert not error.non_retryable
            failed += 1
            await job.take_turn(attempt(2))
        assert job.turn == turn + 1
    return failed


def check(job: Job, sent: dict[bytes, list[Exchange]]) -> None:
    """Every attempt of the job against what the server had of it; the archive verifies clean."""
    archive, reader = job.archive, RequestReader(job.store.get)
    for turn in range(1, TURNS + 1):
        for tried in archive.attempts(RUN, turn):
            assert tried.capture is Capture.WIRE
            exchange = sent[reader.wire(tried.key)].pop(0)
            failure = archive.failure(tried.key)
            if failure is None:
                assert archive.wire_request(RUN, turn) == exchange.request
                assert archive.wire_response(RUN, turn) == exchange.response
                continue
            received = archive.failed_response(tried.key)
            assert failure.status_code == exchange.status
            if failure.error_type == "StreamBroken" and received != exchange.response:
                # The connection was cut: what was on its way is lost, and what arrived is kept.
                assert exchange.response.startswith(received)
            else:
                assert received == exchange.response
    assert damage(verify_job(archive)) == []
