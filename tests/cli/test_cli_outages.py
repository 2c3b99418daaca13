"""A batch whose providers are away for minutes, or lie: every job ends, with its status and the
reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.cli.command_line import CommandLine
from tests.servers.handled import handled
from tests.servers.program import endpoint

pytestmark = pytest.mark.server

POLICY = """
ALWAYS = 10**6

def respond(messages, number):
    goal = str(messages[1]["content"])
    if "overloaded" in goal:
        return {"fail": {"status": 429, "message": "Slow down"}, "times": ALWAYS}
    if "hangs" in goal:
        return {"text": "", "hang": True, "times": ALWAYS}
    if "comes back" in goal:
        down = {"status": 503, "message": "Down", "retry_after": 0.01}
        return {"code": "finish('late')", "fail": down, "times": DOWN}
    return {"code": "finish('well')"}
"""
DOWN = 8
"""Attempts for which a provider is down: with the usual waits between them, which double up to a
minute, they are more than two minutes; this one says that nobody need wait.
"""
EACH = 2
"""Jobs of each kind."""
PAGE = b"<html><body><h1>Sign in</h1><p>Your session has ended.</p></body></html>"


class LoginPage(BaseHTTPRequestHandler):
    """A gateway that answers everything with a page for people, and with success."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def gateway() -> Iterator[str]:
    """The address of the gateway."""
    with handled(LoginPage) as url:
        yield url


def test_each_job_ends_with_its_own_reason(
    cli: CommandLine, gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the providers of others do, a job succeeds whose own works, or works again."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local")
    patience = "retry: {attempts: 3}"

    def jobs(id: str, goal: str, address: str, more: str = patience) -> str:
        model = f"{{name: openai/local, api_base: '{address}/v1', price: free}}"
        about = f"goal: '{goal}, {{n}}', workspace: ws, model: {model}, {more}"
        return f"{{id: '{id}-{{n}}', count: {EACH}, {about}}}"

    with endpoint(cli.write("policy.py", f"DOWN = {DOWN}{POLICY}"), cli.path / "calls") as provider:
        several = [
            jobs("well", "It works", provider),
            jobs("late", "It comes back", provider, "retry: {attempts: 30}"),
            jobs("full", "It is overloaded", provider),
            jobs("still", "It hangs", provider, "retry: {attempts: 3, first_byte: 2s}"),
            # Nobody listens on the port of the discard service.
            jobs("gone", "It is away", "http://127.0.0.1:9"),
            jobs("page", "It lies", gateway),
        ]
        cli.write("ws/README", "nothing")
        file = cli.write("jobs.yaml", f"batch: outages\njobs: [{', '.join(several)}]\n")
        done = cli("run", file, "--json")
    assert done.code == 1
    rows = json.loads(done.out.splitlines()[-1])["jobs"]
    ends = {row["id"]: (row["status"], row["reason"]) for row in rows}
    last = "3 attempts failed, as many as 'retry' allows; the last:"
    expected = {
        "well": ("succeeded", "finished"),
        "late": ("succeeded", "finished"),
        "full": ("failed", f"turn 1: RateLimitError: {last} Slow down (HTTP 429)"),
        "still": ("failed", f"turn 1: ModelTimeout: {last} no byte of a reply arrived within 2 s"),
        "gone": ("failed", f"turn 1: ConnectionFailed: {last} All connection attempts failed"),
        "page": (
            "failed",
            (
                "turn 1: NotAModel: a web page answered, not a model: Sign in Your session has"
                " ended."
            ),
        ),
    }
    assert ends == {f"{id}-{n}": end for id, end in expected.items() for n in range(1, EACH + 1)}
    costs = cli("cost", "outages", "--json").json()["jobs"]
    tries = {"well": 0, "late": DOWN, "full": 3, "still": 3, "gone": 3, "page": 1}
    assert {row["job"]: row["failed_attempts"] for row in costs} == {
        f"outages/{id}-{n}": failed for id, failed in tries.items() for n in range(1, EACH + 1)
    }
