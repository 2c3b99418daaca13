"""The local model servers run as programs, apart from the workers that a test kills."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

POLICY = "def respond(messages, n):\n    return f\"{n}: {messages[-1]['content']}\"\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "path"),
    [("openai_server", "/v1/chat/completions"), ("anthropic_server", "/v1/messages")],
)
def test_a_server_is_a_program(module: str, path: str, tmp_path: Path) -> None:
    """It prints its address, answers by its policy, and keeps every body as a file."""
    policy = tmp_path / "policy.py"
    policy.write_text(POLICY)
    log = tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        f"tests.servers.{module}",
        "--policy",
        str(policy),
        "--log",
        str(log),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            body = json.dumps(
                {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            ).encode()
            request = urllib.request.Request(
                address + path, body, {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request) as response:
                answer = response.read()
        finally:
            process.terminate()
    assert b'"1: hi"' in answer
    assert (log / "00001.request").read_bytes() == body
    assert (log / "00001.response").read_bytes() == answer
