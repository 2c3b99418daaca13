"""First processes whose bubblewrap is killed before it lets them go."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.base.home import Home
from runtime.sandbox.bubblewrap import command_line, installed
from runtime.sandbox.orphans import end_orphans
from runtime.worker.tidying import tidied
from tests.eventually import alive, eventually

pytestmark = pytest.mark.sandbox


@dataclass
class Held:
    """A bubblewrap that waits before it lets its first process go."""

    process: subprocess.Popen[bytes]
    first: int


@pytest.fixture
def held() -> Iterator[Held]:
    """A real one, at the very point of which ``runtime/sandbox/orphans.py`` tells."""
    binary = installed()
    assert binary is not None
    told, status = os.pipe()
    wait, go_on = os.pipe()
    options = ("--unshare-all", "--unshare-user", "--die-with-parent", "--ro-bind", "/", "/")
    info, arguments = os.memfd_create("info", 0), os.memfd_create("arguments", 0)
    named = {"--userns-block-fd": wait, "--info-fd": info, "--json-status-fd": status}
    words = [*options, *(str(word) for pair in named.items() for word in pair), ""]
    os.write(arguments, "\0".join(words).encode())
    os.lseek(arguments, 0, os.SEEK_SET)
    line = command_line(str(binary), arguments)
    process = subprocess.Popen(line, pass_fds=(*named.values(), arguments))
    for descriptor in (*named.values(), arguments):
        os.close(descriptor)
    with os.fdopen(told, "rb") as lines:
        yield Held(process, json.loads(lines.readline())["child-pid"])
    os.close(go_on)
    process.kill()
    process.wait()
    end_orphans()


async def test_a_worker_ends_a_first_process_without_its_bubblewrap(
    held: Held, tmp_path: Path
) -> None:
    """It would sleep for ever: what ends with its parent does so only once it was let go.

    Another worker of this machine may be the one that ends it.
    """
    held.process.kill()
    held.process.wait()

    async with tidied(Home(tmp_path)):
        await eventually(lambda: not alive(held.first), "it is gone", 60)


def test_a_first_process_whose_bubblewrap_lives_is_left(held: Held) -> None:
    """Another worker is about to let it go."""
    end_orphans()
    assert alive(held.first) and held.process.poll() is None
