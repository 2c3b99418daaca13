"""A worker's disk without room, on which the files of jobs are laid out: their statements hear
nothing of it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts import (
    FileCall,
    HeldVersion,
    ReadBatch,
    WorkspaceChange,
    WorkspaceOpen,
)
from activities.hands import HandsActivities
from activities.versions import Versions
from activities.workspace import WorkspaceActivities
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.context.sources import ReadRequest
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.slow

KEY = JobKey(batch="b", job="j")


class Worker:
    """One whose state directory is on a small disk, and a job of its with one file."""

    def __init__(self, disk: Path) -> None:
        self.disk = disk
        store = MemoryStore()
        trees = Trees(store)
        versions = Versions(Checkouts(disk / "checkouts", trees))
        self._hands = HandsActivities(store, versions)
        self._reads = WorkspaceActivities(counter=lambda _: len, versions=versions)
        nothing: dict[str, bytes] = {}
        base = trees.write_base(Tree(), nothing.__getitem__).tree.version
        self._held = HeldVersion(version=base, sandbox="none")

    async def write(self) -> None:
        """Give the job its file."""
        written = await self._changed("write", path="a", text="well")
        self._held = HeldVersion(version=written.version, sandbox="none")

    async def _changed(self, operation: str, **arguments: Any) -> Any:
        change = WorkspaceChange(
            key=KEY,
            turn=1,
            effect=0 if operation == "write" else 1,
            held=self._held,
            writable=Writable(sandbox="none"),
            operation=operation,
            arguments=arguments,
        )
        return await ActivityEnvironment().run(self._hands.change_workspace, change)

    async def sh(self) -> Any:
        """What a command prints that shows the file."""
        return (await self._changed("sh", command="cat a", timeout=60.0)).value["stdout"]

    async def open(self) -> Any:
        """What a statement reads of the file."""
        call = FileCall(workspace="", operation="open", path="a", key=KEY, held=self._held)
        return self._reads.file_call(call).value

    async def view(self) -> Any:
        """What a view shows of the file."""
        request = ReadRequest(obj_id="v", path="a", pos="0", tokens=100, lod=0, known="")
        batch = ReadBatch(workspace="", requests=(request,), key=KEY, held=self._held, encoding="")
        return self._reads.read_sources(batch).results[0].text

    async def begin(self) -> Any:
        """What the set-up of a job leaves."""
        writable = Writable(sandbox="none", setup="echo well > $HOLDFAST_SETUP/a")
        opening = WorkspaceOpen(key=KEY, workspace="", writable=writable)
        await ActivityEnvironment().run(self._hands.open_workspace, opening)
        [made] = self.disk.glob("checkouts/setups/*/**/a")
        return made.read_text()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "4m") as folder:
        yield folder


@pytest.mark.parametrize("ask", ["sh", "open", "view", "begin"])
async def test_a_full_disk_fails_the_activity(disk: Path, ask: str) -> None:
    """It is tried again, and once there is room it comes to what it would have."""
    worker = Worker(disk)
    await worker.write()
    ballast = fill(disk)
    with pytest.raises(OSError, match="No space left on device"):
        await getattr(worker, ask)()
    ballast.unlink()
    assert "well" in str(await getattr(worker, ask)())


@pytest.mark.parametrize("ask", ["sh", "open"])
async def test_so_does_a_disk_that_cannot_be_written(disk: Path, ask: str) -> None:
    """As the kernel makes one with errors."""
    worker = Worker(disk)
    await worker.write()
    _remount(disk, "ro")
    with pytest.raises(OSError, match="Read-only file system"):
        await getattr(worker, ask)()
    _remount(disk, "rw")
    assert "well" in str(await getattr(worker, ask)())


def _remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)
