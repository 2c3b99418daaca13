"""Changing a user's directory, which others change meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.base.errors import HoldfastError
from runtime.trees.entries import Entry, Kind, directory_entry, file_entry, link_entry
from runtime.workspace.checkouts.applying import Put, put_all
from tests.sandbox.test_written import NOBODY, unprivileged

NEW = file_entry(b"new", 0o644)


def put(path: str, was: Entry | None = None, entry: Entry | None = NEW) -> Put:
    data = b"new" if entry is not None and entry.kind is Kind.FILE else b""
    return Put(path, was, entry, data)


def test_each_kind_is_put_and_removed(tmp_path: Path) -> None:
    """Directories on the way are made, and what was of another kind goes first."""
    (tmp_path / "gone").write_bytes(b"old")
    (tmp_path / "was").symlink_to("gone")
    old = file_entry(b"old", (tmp_path / "gone").stat().st_mode)
    put_all(
        tmp_path,
        [
            put("gone", old, None),
            put("was", link_entry("gone"), directory_entry(0o751)),
            put("was/in/it", None, NEW),
            put("link", None, link_entry("was/in/it")),
        ],
    )
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "was").stat().st_mode & 0o777 == 0o751
    assert (tmp_path / "link").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "it", "link", "was"]


@pytest.mark.parametrize("path", ["conf/x", "conf/in/x"])
def test_nothing_is_written_through_a_link(tmp_path: Path, path: str) -> None:
    """Also not through one that came since it was looked through."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for made in (root, outside, outside / "in"):
        made.mkdir()
    (root / "conf").symlink_to(outside)
    with pytest.raises(HoldfastError, match=f"{path} was changed meanwhile"):
        put_all(root, [put(path)])
    (outside / "x").write_bytes(b"new")
    with pytest.raises(HoldfastError, match="conf/x was changed meanwhile"):
        put_all(root, [put("conf/x", file_entry(b"new", 0o644), None)])
    assert sorted(found.name for found in outside.rglob("*")) == ["in", "x"]


def test_what_is_not_as_it_was_stays(tmp_path: Path) -> None:
    """A file that was saved meanwhile, and one that came into being."""
    (tmp_path / "a").write_bytes(b"saved")
    with pytest.raises(HoldfastError, match="a was changed meanwhile"):
        put_all(tmp_path, [put("a", file_entry(b"old", 0o644))])
    with pytest.raises(HoldfastError, match="a came into being meanwhile"):
        put_all(tmp_path, [put("a")])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"saved"


def test_a_directory_that_nobody_may_write_to_has_what_is_in_it(tmp_path: Path) -> None:
    """As those of Go's modules; whoever applies it need not be root. So has one that they may write
    to from now on.
    """
    (tmp_path / "opened").mkdir(mode=0o555)
    if os.geteuid() == 0:
        for path in (tmp_path, tmp_path / "opened"):
            os.chown(path, NOBODY, NOBODY)
    at = os.open(tmp_path, os.O_RDONLY)
    try:
        with unprivileged():
            put_all(
                # The directories above are this user's alone.
                Path(f"/proc/self/fd/{at}"),
                [
                    put("locked", None, directory_entry(0o555)),
                    put("locked/in", None, directory_entry(0o500)),
                    put("locked/in/it", None, NEW),
                    put("opened", directory_entry(0o555), directory_entry(0o755)),
                    put("opened/it", None, NEW),
                ],
            )
    finally:
        os.close(at)
    assert (tmp_path / "locked/in/it").read_bytes() == b"new"
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("locked", "locked/in")]
    assert modes == [0o555, 0o500]
    assert (tmp_path / "opened/it").read_bytes() == b"new"
    assert (tmp_path / "opened").stat().st_mode & 0o777 == 0o755
    (tmp_path / "locked").chmod(0o700)
    (tmp_path / "locked/in").chmod(0o700)
