"""A coroutine tool that nobody waits for any more ends, however early that is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.tools.calls import GAVE_UP
from runtime.tools.host import Asked, ToolHost

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


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something, for ten seconds at most."""
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


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
        until((tmp_path / "blocked").exists)
        slow = call("slow")
        until(lambda: slow.begun)
        host.give_up(slow)
        # Behind the wish, which has arrived by then.
        behind = host.describe("mine:slow")
        behind.answer.result(timeout=10)
        (tmp_path / "go").touch()
        assert blocking.answer.result(timeout=10)["outcome"]["value"] == "went"
        assert slow.answer.result(timeout=10)["outcome"] == GAVE_UP.plain()
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
        asked = host.call("mine:checked", [str(tmp_path)], {})
        until((tmp_path / "blocked").exists)
        host.give_up(asked)
        host.describe("mine:slow").answer.result(timeout=10)
        (tmp_path / "go").touch()
        assert asked.answer.result(timeout=10)["outcome"] == GAVE_UP.plain()
    finally:
        host.close()
