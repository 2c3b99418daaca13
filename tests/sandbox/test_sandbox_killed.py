"""A command whose sandbox somebody ends, neither the worker nor the command itself."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.commands import SANDBOX_TRIES
from activities.contracts import HeldVersion, WorkspaceChange, WorkspaceChanged
from activities.hands import HandsActivities
from activities.tools import ToolActivities
from activities.versions import Versions
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.sandbox.bubblewrap import Bubblewrap
from runtime.sandbox.choice import overlays_work
from runtime.sandbox.command import Command, Place, SandboxKilled
from runtime.trees.entries import file_entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from tests.eventually import alive, eventually
from tests.kill.processes import descendants, started

KEY = JobKey(batch="b", job="j")
SLEEP = f"600.{os.getpid()}"
"""What no other process of this machine is likely to sleep for, in seconds."""

ENDS_IN_MID_LINE = f"""#!{sys.executable} -IS
import os, signal, sys
options = os.fdopen(int(sys.argv[2]), "rb").read().split(b"\\0")
status = int(options[options.index(b"--json-status-fd") + 1])
os.write(status, b'{{ "child-pid": 123456')
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A bwrap that is killed while it tells what it has started: it writes that in several pieces."""

ENDS_BEFORE_IT_LETS_GO = f"""#!{sys.executable} -IS
import os, signal, sys, time
options = os.fdopen(int(sys.argv[2]), "rb").read().split(b"\\0")
status = int(options[options.index(b"--json-status-fd") + 1])
if (child := os.fork()) == 0:
    os.setsid()
    time.sleep(600)
    os._exit(0)
os.write(status, b'{{{{ "child-pid": %d }}}}\\n' % child)
with open({{told!r}}, "w") as file:
    file.write(str(child))
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A bwrap that is killed when it has told of its first process, which waits for a word of it."""

COMMAND = f"cat log.txt; echo more >> log.txt; mkdir made; sleep {SLEEP}; echo woke >> log.txt"


class Killed:
    """A command in the files of a version, and those who end its sandbox as it runs."""

    def __init__(self, path: Path, *, linked: bool) -> None:
        store = MemoryStore()
        self.trees = Trees(store)
        versions = Versions(Checkouts(path / "checkouts", self.trees))
        versions.overlays = linked
        tools = ToolActivities(store)
        self._hands = HandsActivities(store, versions, tools.hosts)
        given = {"log.txt": b"first\n"}
        tree = Tree().changed({path: file_entry(data) for path, data in given.items()})
        self.version = self.trees.write_base(tree, given.__getitem__).tree.version
        self._struck: set[int] = set()

    async def run(self, strikes: list[signal.Signals]) -> WorkspaceChanged:
        """What its statement gets when each of the first sandboxes is ended by a signal; the
        command of one more is let go on.
        """
        change = WorkspaceChange(
            key=KEY,
            turn=1,
            effect=0,
            held=HeldVersion(version=self.version, sandbox="bwrap"),
            writable=Writable(sandbox="bwrap"),
            operation="sh",
            arguments={"command": COMMAND, "timeout": 600},
        )
        environment = ActivityEnvironment()
        ran = asyncio.ensure_future(environment.run(self._hands.change_workspace, change))
        for strike in strikes:
            sandbox, _ = await self._next()
            self._struck.add(sandbox)
            os.kill(sandbox, strike)
        if len(strikes) < SANDBOX_TRIES:
            _, sleeping = await self._next()
            os.kill(sleeping, signal.SIGTERM)
        return await ran

    async def _next(self) -> tuple[int, int]:
        """The next sandbox whose command sleeps, and the process that does."""
        found: list[tuple[int, int]] = []

        def there() -> bool:
            sandboxes = started(os.getpid(), b"/bwrap\0") - self._struck
            mark = f"{SLEEP}\0".encode()
            found[:] = [(pid, one) for pid in sandboxes for one in descendants(pid, mark)]
            return bool(found)

        await eventually(there, "the command sleeps", 120)
        return found[0]

    def files(self, version: str) -> dict[str, bytes]:
        """What is in a version."""
        tree = self.trees.tree(version)
        return {
            path: self.trees.content(entry) if entry.is_file else b""
            for path, entry in tree.under()
        }


@pytest.fixture(params=["layers", "directory"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Killed:
    """With each way to lay out files."""
    linked = request.param == "layers"
    if linked and not overlays_work(tmp_path):
        pytest.skip("overlays do not work on this machine")
    return Killed(tmp_path, linked=linked)


@pytest.mark.kill
async def test_a_command_whose_sandbox_is_ended_runs_again(killed: Killed) -> None:
    """From the files before it, as if the tries before had not been."""
    told = await killed.run([signal.SIGKILL, signal.SIGTERM])

    assert (told.error_type, told.error_message) == (None, "")
    assert (told.value["exit_code"], told.value["stdout"]) == (0, "first\n")
    assert killed.files(told.version) == {"log.txt": b"first\nmore\nwoke\n", "made": b""}


@pytest.mark.kill
async def test_a_command_whose_sandbox_is_ended_each_time_is_an_error(killed: Killed) -> None:
    """Of its statement, which says so; nothing of what it did is in the files."""
    told = await killed.run([signal.SIGKILL] * SANDBOX_TRIES)

    assert (told.error_type, told.error_message) == (
        "RuntimeError",
        "the command was run 3 times, and each time its sandbox was ended from outside (signal 9)",
    )
    assert (told.version, told.changed) == (killed.version, ())


def ended_from_outside(folder: Path, source: str) -> None:
    """A command in a sandbox of the bwrap ``source`` is told to have been ended by others."""
    bwrap = folder / "bwrap"
    bwrap.write_text(source)
    bwrap.chmod(0o700)
    with pytest.raises(SandboxKilled, match=r"^its sandbox was ended from outside \(signal 9\)$"):
        Bubblewrap(bwrap).run(
            Command("true"),
            Place(),
            *(folder / "stdout", folder / "stderr"),
            on_beat=lambda line: None,
            stop=threading.Event(),
        )


def test_a_sandbox_that_is_ended_in_mid_word_was_ended(tmp_path: Path) -> None:
    """What it had said by then is not taken for an answer."""
    ended_from_outside(tmp_path, ENDS_IN_MID_LINE)


def test_a_first_process_that_nobody_lets_go_ends_with_its_sandbox(tmp_path: Path) -> None:
    """It is not tied to its parent's life yet, and neither it nor the worker waits for ever."""
    told = tmp_path / "first"
    ended_from_outside(tmp_path, ENDS_BEFORE_IT_LETS_GO.format(told=str(told)))
    assert not alive(int(told.read_text()))
