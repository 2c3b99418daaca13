"""What is written is counted wherever it is, and left as it was."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.sandbox.layers import remove_tree
from runtime.sandbox.written import Hidden, written_since

NOBODY = 65534
_BYTES = 1 << 20


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user whom modes of files hold."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of that user's, who need not get to those that it is in."""
    made = Path(tempfile.mkdtemp(prefix="holdfast-written-"))
    if os.geteuid() == 0:
        os.chown(made, NOBODY, NOBODY)
    monkeypatch.chdir(made)
    yield Path()
    remove_tree(made)


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o300, 0o400, 0o600], ids=oct)
def test_a_directory_that_its_owner_may_not_see_is_counted(top: Path, mode: int) -> None:
    """With what is below it. Its mode is what it was."""
    with unprivileged():
        inner = top / "hidden" / "inner"
        inner.mkdir(parents=True)
        (inner / "file").write_bytes(bytes(_BYTES))
        for directory in (inner, top / "hidden"):
            directory.chmod(mode)
        assert written_since(top, 0.0) > _BYTES
        assert stat.S_IMODE((top / "hidden").stat().st_mode) == mode
    if os.geteuid() == 0:
        assert stat.S_IMODE(inner.stat().st_mode) == mode


def test_no_depth_is_too_deep(top: Path) -> None:
    """Neither for the kernel's longest path nor for the descriptors of this process; each level
    has more to look at after the one below.
    """
    levels, open_before = 120, _open_descriptors()
    names = ("a" * 250, "b" * 250)
    directory = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        for name in names:
            os.mkdir(name, dir_fd=directory)
            inner = os.open(name, os.O_RDONLY, dir_fd=directory)
            file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inner)
            os.write(file, bytes(4096))
            os.close(file)
            os.close(inner)
        inner = os.open(names[0], os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(directory)

    files = 2 * levels
    assert files * (4096 + 1024) <= written_since(top, 0.0) < files * 4 * (4096 + 1024)
    assert _open_descriptors() == open_before
    assert written_since(top, 2.0**40) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a directory of another user")
def test_what_cannot_be_seen_is_told(top: Path) -> None:
    """No count is better than one that has less."""
    (top / "theirs").mkdir(mode=0o700)
    with unprivileged(), pytest.raises(Hidden):
        written_since(top, 0.0)


def test_links_lead_nowhere(top: Path, tmp_path: Path) -> None:
    """What is elsewhere is not counted."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "file").write_bytes(bytes(_BYTES))
    (top / "link").symlink_to(elsewhere)
    assert written_since(top, 0.0) < _BYTES
