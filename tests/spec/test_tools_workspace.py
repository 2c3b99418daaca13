"""Tools that work on a job's own files: one call leads from a version to a version."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts import HeldVersion, ToolRequest, WorkspaceChange, WorkspaceChanged
from activities.hands import HandsActivities
from activities.tools import ToolActivities
from activities.versions import Versions
from holdfast import tool
from runtime.archive.job import JobArchive
from runtime.archive.trees import Trees
from runtime.base.effect_classes import EffectClass
from runtime.base.errors import InputError
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from tests.eventually import alive, eventually
from tests.spec.conftest import FullStore, Load, Refuse

TOOLS = '''
from pathlib import Path
import os, shutil
from holdfast import tool

@tool(workspace=True)
def build(name: str, text: str = "made", *, workspace: Path) -> list[str]:
    """Builds a file."""
    (workspace / name).write_text(text)
    return sorted(path.name for path in workspace.iterdir())

@tool(workspace=True, retries=2)
def fails(*, workspace: Path) -> None:
    (workspace / "half").write_text(str((workspace / "half").exists()))
    raise ValueError("no")

@tool(workspace=True, retries=1)
def fails_and_counts(*, workspace: Path) -> None:
    with (Path(__file__).parent / "called").open("a") as file:
        file.write("x")
    raise ValueError("no")

@tool(workspace=True, effect="once")
def ends(*, workspace: Path) -> None:
    (workspace / "half").write_text("half")
    os._exit(3)

@tool(workspace=True, effect="once")
def orders(*, workspace: Path) -> int:
    with (Path(__file__).parent / "ordered").open("a") as file:
        file.write("x")
    (workspace / "order").write_text("made")
    return (Path(__file__).parent / "ordered").stat().st_size

@tool(workspace=True)
def replaces(how: str, *, workspace: Path) -> None:
    shutil.rmtree(workspace)
    if how == "link": workspace.symlink_to(Path(__file__).parent / "else")
    if how == "file": workspace.write_text("file")

@tool(workspace=True, timeout=1)
def hangs(*, workspace: Path) -> None:
    import time
    time.sleep(600)
'''
WAITS = """
import os, pathlib, threading
(pathlib.Path(__file__).parent / f"begun-{os.getpid()}").touch()
threading.Event().wait()
"""
KEY = JobKey(batch="b", job="j")


class OnFiles:
    """A worker's activities, and the version that the next call begins with."""

    def __init__(self, path: Path) -> None:
        (path / "t.py").write_text(TOOLS)
        self.path, self.store = path, FullStore()
        self.trees, self.tools = Trees(self.store), ToolActivities(self.store)
        versions = Versions(Checkouts(path / "checkouts", self.trees))
        self.hands = HandsActivities(self.store, versions, self.tools.hosts)
        nothing: dict[str, bytes] = {}
        self.version = self.trees.write_base(Tree(), nothing.__getitem__).tree.version

    async def call(
        self,
        name: str,
        *args: Any,
        module: str = "t",
        effect: int = 0,
        activity: ActivityEnvironment | None = None,
        **marks: Any,
    ) -> WorkspaceChanged:
        """A call in an activity of its own."""
        about: dict[str, Any] = {"key": KEY, "turn": 1, "effect": effect}
        call = ToolRequest(
            tool=f"{module}:{name}", search_path=str(self.path), args=args, **about, **marks
        )
        change = WorkspaceChange(
            held=HeldVersion(version=self.version, sandbox="none"),
            writable=Writable(sandbox="none"),
            operation="tool",
            tool=call,
            **about,
        )
        activity = activity or ActivityEnvironment()
        return await activity.run(self.hands.change_workspace, change)

    def files(self, version: str) -> dict[str, bytes]:
        """What is in a version."""
        tree = self.trees.tree(version)
        return {path: self.trees.content(entry) for path, entry in tree.under()}


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[OnFiles]:
    """It ends its tools' processes."""
    made = OnFiles(tmp_path)
    async with made.tools.open():
        yield made


@pytest.mark.slow
async def test_a_call_leads_from_a_version_to_a_version(worker: OnFiles) -> None:
    """The tool finds the files of the version before; what it leaves is the version after, and a
    retry of the activity finds the result.
    """
    first = await worker.call("build", "a")
    assert (first.value, first.changed) == (["a"], (("a", "A"),))
    assert await worker.call("build", "a") == first
    begun, worker.version = worker.version, first.version
    second = await worker.call("build", "b", effect=1)
    assert second.value == ["a", "b"]
    assert worker.files(second.version) == {"a": b"made", "b": b"made"}
    worker.version = begun
    assert (await worker.call("build", "c", effect=2)).value == ["c"], "the files of that version"


@pytest.mark.slow
async def test_each_try_begins_with_the_version_before(worker: OnFiles) -> None:
    """What the last one left stays, as with a command that fails, and its exception is told."""
    told = await worker.call("fails", retries=2)
    assert (told.error_type, told.error_message) == ("ValueError", "no")
    assert worker.files(told.version) == {"half": b"False"}


@pytest.mark.slow
async def test_a_call_that_is_cancelled_between_two_tries(
    worker: OnFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not made again."""
    monkeypatch.setattr("activities.workspace_tools.FIRST_PAUSE", 60.0)
    activity = ActivityEnvironment()
    calling = asyncio.ensure_future(worker.call("fails_and_counts", retries=1, activity=activity))
    idle = worker.tools.hosts._idle
    await eventually(lambda: any(idle.values()), "the first try is over")
    activity.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert (worker.path / "called").read_text() == "x"


@pytest.mark.slow
async def test_a_process_that_ends(worker: OnFiles) -> None:
    """In mid-call of a tool that runs at most once: nobody knows, and it is not called again."""
    told = await worker.call("ends", often=EffectClass.ONCE)
    assert told.error_type == "OutcomeUnknown"
    run = ActivityEnvironment().info.workflow_run_id
    assert JobArchive(worker.store, "b", "j").effect(run, 1, 700_000) is not None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["link", "file", "nothing"])
async def test_a_directory_that_was_replaced(worker: OnFiles, how: str) -> None:
    """Nothing of what is there now is the job's, or touched; the next call has its files."""
    other = worker.path / "else"
    other.mkdir()
    (other / "secret").write_text("s")
    os.mkfifo(other / "pipe")
    os.utime(other, (1, 1))
    told = await worker.call("replaces", how)
    assert (told.error_type, told.error_message, told.version) == (
        "NotADirectoryError",
        "[Errno 20] The workspace's own directory was replaced",
        worker.version,
    )
    assert (other.stat().st_mtime, sorted(path.name for path in other.iterdir())) == (
        1,
        ["pipe", "secret"],
    )
    assert (await worker.call("build", "a", effect=1)).value == ["a"]


@pytest.mark.slow
async def test_what_came_of_one_call_is_held(
    worker: OnFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that it left, and its result, until the archive can be written."""
    monkeypatch.setattr("activities._held.PAUSE", 0.01)
    worker.store.full = ["trees/", "trees/", ".effect-000000", ".effect-000000"]
    told = await worker.call("orders", often=EffectClass.ONCE)
    assert (told.value, worker.store.full) == (1, [])
    assert worker.files(told.version) == {"order": b"made"}


@pytest.mark.slow
async def test_a_claim_whose_answer_was_lost(
    worker: OnFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is its attempt's, which makes the call."""
    monkeypatch.setattr("activities._held.PAUSE", 0.01)
    worker.store.unheard = [".effect-700000"]
    assert (await worker.call("orders", often=EffectClass.ONCE)).value == 1


@pytest.mark.slow
async def test_a_call_that_takes_too_long(worker: OnFiles) -> None:
    """Its process is ended, and the version is the one before."""
    told = await worker.call("hangs", timeout=1.0)
    assert (told.error_type, told.version) == ("TimeoutError", worker.version)


@pytest.mark.slow
async def test_a_call_is_cancelled_while_its_module_is_imported(worker: OnFiles) -> None:
    """However long that takes: the process ends, and the next call is made in another."""
    (worker.path / "waits.py").write_text(WAITS + TOOLS)
    activity = ActivityEnvironment()
    calling = asyncio.ensure_future(worker.call("build", "a", module="waits", activity=activity))
    await eventually(lambda: bool(list(worker.path.glob("begun-*"))), "the import has begun")
    activity.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    (begun,) = worker.path.glob("begun-*")
    pid = int(begun.name.partition("-")[2])
    await eventually(lambda: not alive(pid), f"process {pid} ends")
    assert (await worker.call("build", "a")).value == ["a"]


FILE = """
batch: b
defaults: {{model: openai/x, workspace: {workspace}}}
jobs: [{{id: a, goal: g, tools: ["onfiles:build"]}}]
"""


def test_the_statement_does_not_give_the_directory(load: Load, refuse: Refuse, place: Path) -> None:
    """The checker does not know the parameter; a job whose files are read-only cannot have it."""
    (place / "onfiles.py").write_text(TOOLS)
    (job,) = load(FILE.format(workspace="{write: true}")).jobs
    assert job.tools[0].workspace
    assert job.tools[0].stub == "def build(name: str, text: str = 'made') -> list[str]: ..."
    assert (
        "tools[0]: 'build' works on the job's own files, and the job's workspace is read-only"
        in (refuse(FILE.format(workspace=".")))
    )


def test_a_tool_is_told_by_its_place_behind_one_that_is_none(refuse: Refuse, place: Path) -> None:
    """What cannot be imported counts as the others do."""
    (place / "onfiles.py").write_text(
        TOOLS + "\n@tool(queue='gpu')\ndef far(x: int) -> int:\n    return x\n"
    )
    text = FILE.format(workspace=".").replace(
        '["onfiles:build"]', '["nosuch:tool", "onfiles:build", "onfiles:far"]'
    )
    told = refuse("limits: {tools: {'onfiles:far': {concurrent: 1}}}" + text)
    assert [one.partition(": ")[2].partition(": ")[0] for one in told.splitlines()] == [
        f"jobs[0].tools[{index}]" for index in range(3)
    ]


def test_what_the_decorator_refuses() -> None:
    """A tool without the parameter, and a queue whose name is none."""

    def without(path: str) -> None: ...

    with pytest.raises(InputError) as caught:
        tool(workspace=True)(without)
    assert "'*, workspace: Path'" in str(caught.value)
    with pytest.raises(InputError) as caught:
        tool(queue="g p u")(without)
    told = f"the tool '{__name__}:without': expected queue to be a name of at most 64 letters, "
    assert str(caught.value).startswith(told)
