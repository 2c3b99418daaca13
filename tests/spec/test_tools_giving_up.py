"""A coroutine tool that nobody waits for any more ends, however early that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.tools.calls import GAVE_UP
from runtime.tools.host import Asked, ToolHost
from tests.cli.command_line import wait_for
from tests.eventually import SECONDS

pytestmark = pytest.mark.slow

TOOLS = """\
import asyncio
import time
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

def until_go(here: str) -> str:
    Path(here, "blocked").touch()
    while not Path(here, "go").exists():
        time.sleep(0.01)
    return here

async def checked(here: Annotated[str, AfterValidator(until_go)]) -> str:
    await asyncio.sleep(60)
    return "slept"

async def blocks(here: str) -> str:
    until_go(here)
    return "went"

async def slow(here: str) -> str:
    await asyncio.sleep(60)
    return "slept"
"""
"""``blocks`` holds the event loop of all coroutines, as one that computes does."""


def test_given_up_before_its_first_step(tmp_path: Path) -> None:
    """A coroutine that had begun, and waited for another to let the event loop go, is told as given
    up: its process takes further calls.
    """
    (tmp_path / "mine.py").write_text(TOOLS)
    host = ToolHost(str(tmp_path))
    try:

        def call(name: str) -> Asked:
            return host.call(f"mine:{name}", [str(tmp_path)], {})

        blocking = call("blocks")
        wait_for((tmp_path / "blocked").exists, "the event loop is held")
        slow = call("slow")
        wait_for(lambda: slow.begun, "the call has begun")
        host.give_up(slow)
        # Behind the wish, which has arrived by then.
        behind = host.describe("mine:slow")
        behind.answer.result(timeout=SECONDS)
        (tmp_path / "go").touch()
        assert blocking.answer.result(timeout=SECONDS)["outcome"]["value"] == "went"
        assert slow.answer.result(timeout=SECONDS)["outcome"] == GAVE_UP.plain()
        assert host.takes_calls
    finally:
        host.close()


def test_given_up_while_its_arguments_are_checked(tmp_path: Path) -> None:
    """A coroutine whose wish to end came before it was there to be cancelled is told as given
    up.
    """
    (tmp_path / "mine.py").write_text(TOOLS)
    host = ToolHost(str(tmp_path))
    try:
        # Its process stays for another one's sake.
        host.call("mine:slow", [str(tmp_path)], {})
        asked = host.call("mine:checked", [str(tmp_path)], {})
        wait_for((tmp_path / "blocked").exists, "the event loop is held")
        host.give_up(asked)
        host.describe("mine:slow").answer.result(timeout=SECONDS)
        (tmp_path / "go").touch()
        assert asked.answer.result(timeout=SECONDS)["outcome"] == GAVE_UP.plain()
    finally:
        host.close()
