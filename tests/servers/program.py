"""A local model server in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def endpoint(policy: Path, log: Path, module: str = "openai_server") -> Iterator[str]:
    """The address of a server that answers by ``policy``, of the protocol of a ``module`` here:
    OpenAI's, if none is named.
    """
    program = [sys.executable, "-m", f"tests.servers.{module}"]
    command = [*program, "--policy", str(policy), "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
