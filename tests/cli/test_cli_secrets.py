"""Secrets are in no object, history, log, prompt or output, wherever they came from; what was
masked can be told.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.archive.container import unseal
from runtime.archive.stores import open_store
from runtime.base.redaction.marks import MARK, mark_of
from tests.cli.command_line import ROOT, CommandLine
from tests.cli.temporal_cli import plain_payloads

pytestmark = pytest.mark.server

PROVIDER = "sk-proj-0aA1bB2cC3dD4eE5fF6gG7hH8"
TEAM = "correct horse 42"
GITHUB = "ghp_" + "z9" * 18
REDACTION_KEY = "a long enough redaction key"

POLICY = f"""
SECRET = {PROVIDER!r}
REPLIES = [
    {{"code": "a = view('config.env')"}},
    {{"code": "print(open('config.env').read())\\nprint(leak())", "text": f"Your key is {{SECRET}}, is it not?"}},
    {{"code": "finish(open('config.env').read())", "fail": {{"status": 429, "message": f"too fast for {{SECRET}}"}}, "times": 1}},
]

def respond(messages):
    return REPLIES[sum(message["role"] == "assistant" for message in messages)]
"""

TOOLS = f'''
import os

def leak() -> dict[str, str]:
    """Tells what it should not."""
    return {{"pin": os.environ["TEAM_PIN"], "token": {GITHUB!r}, "key": os.environ["OPENAI_API_KEY"]}}
'''


@contextmanager
def model_server(path: Path) -> Iterator[str]:
    """A model server's address; the bodies that it receives are kept in ``path/log``."""
    (path / "policy.py").write_text(POLICY)
    command = [
        "-m",
        "tests.servers.openai_server",
        "--policy",
        path / "policy.py",
        "--log",
        path / "log",
    ]
    with subprocess.Popen(
        [sys.executable, *map(str, command)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def test_secrets_are_nowhere(own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in which every source holds secrets: goal, file, tool, environment, the provider's
    replies and errors.
    """
    cli = own_cli
    for name, value in {
        "OPENAI_API_KEY": PROVIDER,
        "TEAM_PIN": TEAM,
        "HOLDFAST_REDACTION_KEY": REDACTION_KEY,
    }.items():
        monkeypatch.setenv(name, value)
    cli.write(
        "ws/config.env",
        f"# line\nPIN={TEAM}\nTOKEN={GITHUB}\nKEY={PROVIDER}\nticket=AB-1234\nend\n",
    )
    cli.write("leaktools.py", TOOLS)
    with model_server(cli.path) as address:
        file = cli.jobs(
            f"id: one, goal: 'Use {TEAM}', model: {{name: openai/gpt-4o, api_base:"
            f" '{address}/v1'}}, tools: ['leaktools:leak'], redact: {{env: [TEAM_PIN], patterns:"
            " ['AB-[0-9]+']}",
            batch="secrets",
        ).rename(cli.path / "secrets.yaml")
        text = file.read_text().replace("{goal: g, ", "{")
        file.write_text(text)
        done = cli.finished(cli.start("run", file, HOLDFAST_DEBUG="1"))
    assert (done.code, done.out.splitlines()[-1].startswith("1 succeeded")) == (0, True), done
    exported = cli("export", "secrets/one").out
    looked_at = [done.out, done.err, exported, cli("export", "secrets/one", "--format", "otel").out]
    looked_at += [
        cli("log", "secrets/one").out,
        cli("show", "secrets/one@3").out,
        cli("verify", "secrets/one").out,
    ]
    store = open_store(str(cli.home / "archive"))
    looked_at += [
        unseal(key, store.get(key)).header_bytes.decode() for key in store.list("secrets/")
    ]
    received = sorted((cli.path / "log").glob("*.request"))
    files = [path for path in cli.home.rglob("*") if path.is_file()]
    assert {"temporal.db", "server.log"} <= {path.name for path in files}
    raw = [text.encode() for text in looked_at] + [
        path.read_bytes() for path in (*files, *received)
    ]
    assert cli("up").code == 0
    payloads = plain_payloads(cli, "holdfast/secrets/one")
    assert any(b"[masked:TEAM_PIN:" in data for data in payloads)
    raw += payloads
    for secret in (PROVIDER, TEAM, GITHUB, "AB-1234"):
        assert not any(
            secret.encode() in data or json.dumps(secret)[1:-1].encode() in data for data in raw
        ), secret
    assert len(received) == 4
    told = cli("show", "secrets/one@3", "--part", "segments", "--json").json()["segments"]
    assert [(s["kind"], s["masked"]) for s in told if s["masked"]] == [
        ("goal", 1),
        ("view", 4),
        ("result", 4),
    ]
    assert "4 values masked" in cli("show", "secrets/one@2").out
    marks = dict(MARK.findall(cli("show", "secrets/one@3").out))
    expected = {
        "TEAM_PIN": TEAM,
        "OPENAI_API_KEY": PROVIDER,
        "github-token": GITHUB,
        "pattern-1": "AB-1234",
    }
    keyed = {
        name: mark_of(name, value.encode(), REDACTION_KEY.encode())
        for name, value in expected.items()
    }
    assert {name: f"[masked:{name}:{code}]" for name, code in marks.items()} == keyed
    (end,) = [
        json.loads(line) for line in exported.splitlines() if json.loads(line)["type"] == "end"
    ]
    assert end["result"].splitlines()[1] == f"PIN={keyed['TEAM_PIN']}"
