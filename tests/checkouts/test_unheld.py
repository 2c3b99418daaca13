"""What no version can hold: it is told to the statement that made it, and holds nothing up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts import HeldVersion, WorkspaceChange, WorkspaceChanged
from activities.hands import HandsActivities
from activities.versions import Versions
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.base.path_lengths import MOST_DIRECTORIES, too_long
from runtime.base.spec.models import Writable
from runtime.base.values import JobKey
from runtime.sandbox.layers import changed_in
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts
from runtime.workspace.checkouts.excluded import excluded
from runtime.workspace.checkouts.taking import Digests, take

DEEP = "/".join("d" * (MOST_DIRECTORIES + 1))
"""A path of one directory too many."""


class Hands:
    """The activity of a worker whose job begins empty."""

    def __init__(self, path: Path) -> None:
        store = MemoryStore()
        self.trees = Trees(store)
        self._hands = HandsActivities(store, Versions(Checkouts(path / "checkouts", self.trees)))
        nothing: dict[str, bytes] = {}
        self._version = self.trees.write_base(Tree(), nothing.__getitem__).tree.version

    async def change(self, operation: str, **arguments: Any) -> WorkspaceChanged:
        """What an effect comes to."""
        change = WorkspaceChange(
            key=JobKey(batch="b", job="j"),
            turn=1,
            effect=0,
            held=HeldVersion(version=self._version, sandbox="none"),
            writable=Writable(sandbox="none"),
            operation=operation,
            arguments=arguments,
        )
        return await ActivityEnvironment().run(self._hands.change_workspace, change)


def deep(top: Path) -> None:
    """Make ``DEEP`` and what is below it."""
    here = os.open(top, os.O_RDONLY)
    for name in [*DEEP.split("/"), *"d" * 100]:
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize("path", [DEEP, f"{DEEP}{'/d' * 900}", "n" * 256, f"{'p' * 200}/" * 16])
async def test_a_path_that_is_too_long_is_an_error_of_its_statement(
    tmp_path: Path, path: str
) -> None:
    """Of names, of bytes, or with a name that no file system takes; the files stay."""
    made = await Hands(tmp_path).change("write", path=f"{path}/f", text="x", parents=True)
    assert (made.error_type, "File name too long" in made.error_message) == ("OSError", True)
    assert made.version == made.base


async def test_a_command_may_make_directories_without_end(tmp_path: Path) -> None:
    """Those that are too deep are dropped, and told."""
    command = f"mkdir -p {DEEP}{'/d' * 100}"
    hands = Hands(tmp_path)
    made = await hands.change("sh", command=command, timeout=60)
    assert made.value["exit_code"] == 0
    assert made.value["note"].startswith(f"{DEEP} is 200 directories deep or more, which a version")
    assert [path for path, _ in hands.trees.tree(made.version).under()][-1] == DEEP[:-2]


async def test_of_many_things_that_are_dropped_some_are_told(tmp_path: Path) -> None:
    """Or a command could leave a result that is too long to be told at all."""
    command = "mkfifo $(seq 1000 1299)"
    note = (await Hands(tmp_path).change("sh", command=command, timeout=60)).value["note"]
    assert note.startswith(
        "1000 is a named pipe, which a version cannot hold: it was dropped; 1001"
    )
    assert note.endswith(
        "; 1049 is a named pipe, which a version cannot hold: it was dropped;"
        " and 250 more such were dropped"
    )


def test_a_directory_of_any_depth_is_looked_through(tmp_path: Path) -> None:
    """A user's, and the upper layer of a command."""
    deep(tmp_path)
    taken = take(tmp_path, excluded(()), Digests())
    assert [path for path, _ in taken.tree.under()][-1] == DEEP[:-2]
    assert taken.left == (DEEP,)
    (*held, last) = changed_in(tmp_path)
    assert ([one.kind for one in held], last.kind) == (["directory"] * MOST_DIRECTORIES, "dropped")
    assert (last.path, last.reason) == (DEEP, too_long(DEEP))


@pytest.mark.parametrize("name", ["a", "zz"])
def test_no_directory_that_has_become_a_link_is_gone_through(tmp_path: Path, name: str) -> None:
    """Whoever else may write to a workspace can put a link in the place of a directory while it is
    copied, before the directory is come to or after: what that leads to is none of the job's.
    """
    theirs, top = tmp_path / "theirs", tmp_path / "top"
    for folder in (theirs, top / "d"):
        folder.mkdir(parents=True)
    (theirs / "secret").write_text("secret")
    (top / name).write_text("x")

    class Swapping(Digests):
        def entry(self, path: str, status: os.stat_result, *, at: int | None = None) -> Any:
            (top / "d").rename(tmp_path / "gone")
            (top / "d").symlink_to(theirs)
            return super().entry(path, status, at=at)

    if name == "a":
        tree = take(top, excluded(()), Swapping()).tree
        assert {path: entry.kind.value for path, entry in tree.under()} == {"a": "f", "d": "l"}
    else:
        with pytest.raises(FileNotFoundError, match="replaced while it was looked through"):
            take(top, excluded(()), Swapping())
