"""What Temporal's own command line prints of a workflow, and the payloads within it."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from temporalio.api.common.v1 import Payload

from runtime.server.authentic.compression import decompressed
from runtime.server.binary import installed_binary
from tests.cli.command_line import CommandLine


def history(cli: CommandLine, workflow: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A workflow's history as the real Temporal CLI prints it, or what it says instead."""
    binary = installed_binary()
    assert binary is not None
    up = cli("status", "--json").json()["server"]
    return subprocess.run(
        [
            *(str(binary), "workflow", "show", "--workflow-id", workflow, "--output", "json"),
            *("--address", up["address"], "--namespace", "holdfast", *options),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def plain_payloads(cli: CommandLine, workflow: str) -> list[bytes]:
    """The data of all payloads in a workflow's history, as before they were compressed."""
    done = history(cli, workflow)
    assert done.returncode == 0, done.stderr
    return [
        decompressed(
            Payload(
                metadata={name: b64decode(text) for name, text in one["metadata"].items()},
                data=b64decode(one["data"]),
            )
        ).data
        for one in _payloads(json.loads(done.stdout))
    ]


def _payloads(value: Any) -> Iterator[dict[str, Any]]:
    match value:
        case {"metadata": {"encoding": _}, "data": _}:
            yield value
        case dict():
            for inner in value.values():
                yield from _payloads(inner)
        case list():
            for inner in value:
                yield from _payloads(inner)
