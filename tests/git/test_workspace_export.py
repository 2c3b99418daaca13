"""``workspace export`` that is broken off: what stands there is whole, or nothing stands there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from runtime.archive.stores import open_store
from tests.cli.command_line import CommandLine
from tests.git.jobs import hands_job, written_tree
from tests.small_disk import small_disk

FORMS = pytest.mark.parametrize("form", [(), ("--git",)])


@pytest.mark.kill
@FORMS
def test_a_killed_export_leaves_nothing_that_looks_whole(
    cli: CommandLine, tmp_path: Path, form: tuple[str, ...]
) -> None:
    """The same command, given again, writes all of it."""
    export, to = ("workspace", "export", "one", *form), tmp_path / "above" / "out"
    killed = cli.finished(cli.start(*export, to, HOLDFAST_FAILPOINT="export.before_move"))
    assert killed.code == -signal.SIGKILL
    assert not os.path.lexists(to)
    again = cli(*export, to)
    assert again.code == 0, again.err
    assert cli(*export, tmp_path / "other").code == 0
    assert written_tree(to).keys() == written_tree(tmp_path / "other").keys()
    assert to.stat().st_mode & 0o777 == 0o755


@FORMS
def test_what_a_full_disk_broke_off_is_gone(
    cli: CommandLine, tmp_path: Path, form: tuple[str, ...]
) -> None:
    """A directory that was there already stays, with what it has got."""
    job = f"big{len(form)}"
    store = open_store(str(cli.home / "archive"))
    hands_job(store, {"big": os.urandom(500_000)}, [("x", {})], job=job)
    with small_disk(tmp_path / "disk", "256k") as disk:
        (disk / "mine").mkdir()
        for name in ("out", "mine"):
            full = cli("workspace", "export", job, *form, disk / name)
            assert full.code == 1, full.err
            assert full.err.startswith(f"error: {disk}/{name}")
            assert ".holdfast-export-" not in full.err
            assert "full disk" in full.err or "No space left" in full.err
        assert [path.name for path in disk.iterdir()] == ["mine"]


def test_a_directory_that_is_there_is_filled_itself(cli: CommandLine, tmp_path: Path) -> None:
    """Whoever stands in it sees the files."""
    (tmp_path / "mine").mkdir()
    before = (tmp_path / "mine").stat().st_ino
    assert cli("workspace", "export", "one", tmp_path / "mine").code == 0
    assert (tmp_path / "mine").stat().st_ino == before
    assert "pkg/a.py" in written_tree(tmp_path / "mine")
