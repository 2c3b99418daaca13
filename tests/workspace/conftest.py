"""A workspace with everything hostile in it, beside a secret that no test may ever read."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.workspace.files import Workspace

SECRET = "secret outside the wall"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace directory, with a secret file and a secret directory beside it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text(SECRET)
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def hostile(root: Path) -> Iterator[Path]:
    """``root`` with links out, loops, a pipe, a socket, a sparse file and odd names."""
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("print(1)\n")
    (root / "out").symlink_to("../secret.txt")
    (root / "out_dir").symlink_to("../private")
    (root / "out_absolute").symlink_to(root.parent / "secret.txt")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "around").symlink_to("src/../../workspace/src/a.py")
    (root / "in").symlink_to("src/a.py")
    (root / "in_absolute").symlink_to(root / "src" / "a.py")
    (root / "in_dir").symlink_to("src")
    (root / "broken").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    os.mkfifo(root / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(2 * 1024**3)
    (root / "line\nbreak").write_text("odd name\n")
    Path(os.fsdecode(bytes(root) + b"/caf\xe9")).write_text("latin-1 name\n")
    (root / "back\\slash").write_text("backslash name\n")
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's address has 107 bytes at most, and pytest's paths are long
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        yield root


@pytest.fixture
def workspace(hostile: Path) -> Workspace:
    """The hostile workspace, seen from inside."""
    return Workspace(str(hostile))
