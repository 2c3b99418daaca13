"""A batch's budget, as the provider counts what it sold: attempts that fail and cost something are
of it, and only calls over which a worker died may be beyond it.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine, wait_for
from tests.servers.program import endpoint

PROMPT, REPLY = 2_000, 250
"""Tokens of a call as the provider sells it: of a prompt that is longer, by a reply as long as the
least that is asked for.
"""
IN, OUT = 10, 30
"""US dollars for a million of them."""
LONGEST = 300
"""Tokens of the longest reply that jobs ask for."""
OPEN = 3
"""Jobs at a time, and so calls in flight."""

POLICY = f"""
USAGE = {{
    "prompt_tokens": {PROMPT},
    "completion_tokens": {REPLY},
    "total_tokens": {PROMPT + REPLY},
}}
BROKE = {{"type": "server_error", "message": "Broke", "usage": USAGE}}

def respond(messages, number):
    bad = {{"times": 99, "delay": 0.1}}
    if number % 4 == 1:
        return bad | {{"text": "Well", "error_after": 0, "error": BROKE}}
    if number % 9 == 2:
        return bad | {{"fail": {{"status": 500, "message": "Oops", "retry_after": 0.05}}}}
    if number % 11 == 3:
        return bad | {{"text": "Garbage, garbage", "end_after": 8}}
    return {{"code": "x = 1", "usage": USAGE, "delay": 0.1}}
"""


def sold(calls: Path) -> int:
    """The calls that the provider sold: those of which it told the usage, and those that nobody
    waited for any more.
    """
    said = [path.with_suffix(".response") for path in calls.glob("*.request")]
    texts = [path.read_text() if path.exists() else "" for path in said]
    return sum("Oops" not in text and "Garbage" not in text for text in texts)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "budget", "killed"),
    [("usd", 0.6, False), ("usd", 0.6, True), ("tokens", 50_000, False)],
)
def test_no_more_is_sold_than_the_budget(
    cli: CommandLine, kind: str, budget: float, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every job ends with the batch's reason; a worker that is killed costs its calls in flight."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local")
    calls = cli.path / "calls"
    with endpoint(cli.write("policy.py", POLICY), calls) as provider:
        price = f"price: {{input: {IN}, output: {OUT}}}, max_tokens: {LONGEST}"
        model = f"{{name: openai/local, api_base: '{provider}/v1', {price}}}"
        file = cli.jobs(
            f"id: 'j{{n}}', count: 6, model: {model}, budget: {{turns: 200, tokens: 9000000}}",
            batch=f"sold-{kind}-{killed}",
            head=f"concurrency: {OPEN}\nbudget: {{{kind}: {budget}}}",
        )
        if killed:
            process = cli.start("run", file)
            wait_for(lambda: sold(calls) >= 8, "calls were sold", process)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        done = cli("run", file, "--json")
    assert done.code == 3
    ends = {job: (row["status"], row["reason"]) for job, row in done.summary().items()}
    amount = f"${budget:.2f}" if kind == "usd" else f"{budget:,} tokens"
    words = f"what is left of the batch's budget ({amount}) holds no other call"
    assert {(status, reason.partition(";")[0]) for status, reason in ends.values()} == {
        ("budget", words)
    }
    assert len(ends) == 6
    each = (PROMPT * IN + REPLY * OUT) / 1e6 if kind == "usd" else PROMPT + REPLY
    spent = each * sold(calls)
    assert budget / 2 < spent <= budget + killed * OPEN * each
    failed = [path for path in calls.glob("*.response") if "Broke" in path.read_text()]
    assert len(failed) > 4
    # The provider is honest: it sells no more than it was asked for.
    asked = [json.loads(path.read_text()) for path in calls.glob("*.request")]
    assert all(one["max_tokens"] >= REPLY for one in asked)
