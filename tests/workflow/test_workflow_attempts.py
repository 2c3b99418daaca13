"""Failed attempts in a job: what they cost is the job's, they end it when its budget is spent, and
a replay books the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from runtime.base.spec.models import Budget, Retry
from runtime.base.values import Usage
from runtime.job.stops import JobStatus
from tests.replay.replays import frozen_again
from tests.replay.timelines import archive_of, sound
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import ProviderServer
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

USAGE = {"prompt_tokens": 150_000, "completion_tokens": 10, "total_tokens": 150_010}
BROKEN = {
    "text": "Well",
    "error_after": 0,
    "error": {"type": "server_error", "message": "Broke", "usage": USAGE},
    "times": 99,
}
OOPS = {"fail": {"status": 500, "message": "Oops"}, "times": 99}


def options_of(server: ProviderServer) -> dict[str, Any]:
    """What reaches a server that speaks OpenAI's protocol."""
    return {"api_base": f"{server.address}/v1", "api_key": "sk-local"}


async def test_failed_attempts_spend_the_budget(stage: Stage) -> None:
    """Three of $0.3751 are more than a dollar: there is no fourth, and the reason says where the
    money went.
    """
    async with ProviderServer(OpenAIProtocol(), lambda _m, _n: BROKEN).serving() as server:
        budget = Budget(turns=9, usd=1.0, tokens=10**9)
        outcome, archive = await stage.run(
            "openai/gpt-4o", model_options=options_of(server), budget=budget
        )
        asked = len(server.exchanges)
    assert (outcome.status, outcome.turns, asked) == (JobStatus.BUDGET, 0, 3)
    assert (outcome.usage.prompt, outcome.usage.completion) == (450_000, 30)
    assert outcome.cost_usd == pytest.approx(1.1253)
    assert outcome.reason.startswith(
        "the budget of $1.00 is spent ($1.1253 used); turn 1: 3 failed attempts used 450,030 tokens"
        " and $1.1253"
    )
    assert outcome.reason.endswith("; the last: ServerError: Broke")
    assert sound(archive)


async def test_a_frozen_replay_books_the_same(stage: Stage) -> None:
    """What two attempts used before the reply stands in its step, in the end of the job, and in
    that of its replay.
    """
    answers = [BROKEN, BROKEN, {"code": "x = 1"}, {"code": "finish(x)"}]
    async with ProviderServer(OpenAIProtocol(), lambda _m, n: answers[n - 1]).serving() as server:
        spec = stage.spec("openai/gpt-4o", model_options=options_of(server))
        outcome = await (await stage.start(spec)).result()
        again, frozen = await frozen_again(stage, spec, outcome.run)
        asked = len(server.exchanges)
    assert (outcome.status, again.status, asked) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED, 4)
    assert outcome.usage == Usage(prompt=302_000, completion=22, cache_read=1024)
    assert (again.usage, again.cost_usd) == (outcome.usage, outcome.cost_usd)
    archive = archive_of(stage, spec.id)
    step = archive.find_step(outcome.run, 1)
    assert step is not None
    assert (step.failed_attempts.attempts, step.failed_attempts.usage) == (
        2,
        Usage(prompt=300_000, completion=20),
    )
    assert sound(archive) and sound(frozen)


async def test_a_job_whose_attempts_are_over_has_failed(stage: Stage) -> None:
    """With how many there were, and what the last one said."""
    async with ProviderServer(OpenAIProtocol(), lambda _m, _n: OOPS).serving() as server:
        retry = Retry(attempts=2)
        outcome, _ = await stage.run("openai/gpt-4o", model_options=options_of(server), retry=retry)
        asked = len(server.exchanges)
    assert (outcome.status, asked, outcome.usage) == (JobStatus.FAILED, 2, Usage())
    assert (
        outcome.reason
        == "turn 1: ServerError: 2 attempts failed, as many as 'retry' allows; the last: Oops (HTTP"
        " 500)"
    )
