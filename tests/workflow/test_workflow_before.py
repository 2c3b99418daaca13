"""Jobs that a build of before began: what a patch has changed since is as it was for them."""

from __future__ import annotations

from typing import Any

import pytest
from stage import Stage
from temporalio import workflow

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

INDENTS = """
import textwrap
try:
    made = len(textwrap.indent('a\\n' * 2000, 'x' * 2000))
except ValueError:
    made = 'too much'
finish(made)
"""


async def test_a_job_of_before_has_what_functions_made_then(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history has no mark of a patch, and replays; a job of today hears of the bound."""
    with monkeypatch.context() as then:
        then.setattr(workflow, "patched", lambda _: False)
        assert await result(stage) == 4_004_000
    assert await result(stage) == "too much"
    await stage.replay_all()


async def result(stage: Stage) -> Any:
    """Of a job of its own."""
    outcome, archive = await stage.run([INDENTS])
    end = archive.end(outcome.run)
    assert end is not None
    return end.result
