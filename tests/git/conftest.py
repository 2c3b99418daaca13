"""One archive with a job that changes its files in every way, for all tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.archive.stores import open_store
from runtime.cli.main import main
from tests.cli.command_line import CommandLine
from tests.git.jobs import What, hands_job

BASE: What = {
    "pkg/a.py": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n",
    "pkg/b.py": b"alpha\nbeta\ngamma\ndelta\nepsilon\n",
    "gone.txt": b"old\n",
    "data.bin": b"\0\1\2" * 50,
    "run.sh": ("mode", (0o755, b"#!/bin/sh\n")),
    "link": ("link", "pkg/a.py"),
    "private": ("mode", (0o600, b"p\n")),
    "caf\udce9.txt": b"latin\xe9\n",
}
STATEMENTS: list[tuple[str, What]] = [
    (
        'edit("pkg/a.py", "two", "TWO")\nwrite("new/n.txt", "n")',
        {
            "pkg/a.py": b"one\nTWO\nthree\nfour\nfive\nsix\nseven\neight\n",
            "new/n.txt": b"n",
            "caf\udce9.txt": b"latin\xe9\nmore\n",
        },
    ),
    ("x = 1", {}),
    (
        "# change much\nsh('make')",
        {
            "gone.txt": None,
            "data.bin": b"\0\xff" * 40,
            "run.sh": ("mode", (0o644, b"#!/bin/sh\n")),
            "private": ("mode", (0o640, b"p\n")),
            "link": ("link", "pkg/b.py"),
            "empty": ("directory", 0o755),
        },
    ),
    (
        'move("pkg/b.py", "pkg/moved.py")',
        {"pkg/b.py": None, "pkg/moved.py": b"alpha\nbeta\ngamma\ndelta\nepsilon\n"},
    ),
    (
        'edit("pkg/moved.py", "gamma", "GAMMA\\nand more")\nfinish("ok")',
        {"pkg/moved.py": b"alpha\nbeta\nGAMMA\nand more\ndelta\nepsilon\n"},
    ),
]


@pytest.fixture(scope="module")
def archive_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory whose archive has the job ``hands/one``."""
    home = tmp_path_factory.mktemp("home")
    store = open_store(str(home / "archive"))
    hands_job(store, BASE, STATEMENTS, workspace=str(home / "src"))
    return home


@pytest.fixture
def cli(
    archive_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> CommandLine:
    """Commands that read that archive; no server is needed."""
    monkeypatch.setenv("HOLDFAST_HOME", str(archive_home))
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    assert main(["--version"]) == 0
    capsys.readouterr()
    return CommandLine(tmp_path, archive_home, capsys)
