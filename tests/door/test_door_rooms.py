"""Holdfast's packages are its own, whatever else is called ``runtime``, ``activities`` or
``workflows``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = "import sys; from holdfast.__main__ import entry; sys.exit(entry())"
"""What an installer makes of the console script."""

JOBS = """
batch: door
defaults: {workspace: .}
jobs:
  - {id: a, goal: g, model: scripted/a.json}
"""
REPLIES = """[
  {"code": "table = view('numbers.parquet', lod=1)"},
  {"code": "finish({'n': 3})"}
]"""


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """A directory in which three names of ours are somebody else's, and fail or say so."""
    folder = tmp_path / "strangers"
    folder.mkdir()
    (folder / "runtime.py").write_text("name = 'their runtime'\n")
    (folder / "activities.py").write_text("raise RuntimeError('not for you')\n")
    (folder / "workflows").mkdir()
    (folder / "workflows" / "__init__.py").write_text("name = 'their workflows'\n")
    return folder


def run(
    *arguments: str, path: Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A Python process with ``path`` before this repository on PYTHONPATH, and no other environment
    than it needs.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": f"{path}{os.pathsep}{ROOT}", "PATH": os.environ["PATH"], **environment},
        cwd=cwd or path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("way", [["-c", SCRIPT], ["-m", "holdfast"]])
def test_the_script_finds_its_own_packages(strangers: Path, way: list[str]) -> None:
    """``--version`` is told, with strangers on PYTHONPATH and in the current directory."""
    done = run(*way, "--version", path=strangers, cwd=strangers)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("holdfast ")


def test_strangers_that_were_loaded_before(strangers: Path) -> None:
    """A stranger that the interpreter loads at its start is no obstacle either."""
    (strangers / "sitecustomize.py").write_text("import runtime, workflows\n")
    done = run("-m", "holdfast", "--version", path=strangers)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_everybody_gets_their_own(strangers: Path) -> None:
    """In one process, a project gets its packages, before and after Holdfast has loaded those by
    the same names.
    """
    code = (
        "import runtime, holdfast\n"
        "log = holdfast.EventLog()\n"
        "import workflows, holdfast.running\n"
        "print(runtime.name, '|', workflows.name, '|', type(log).__module__)"
    )
    done = run("-c", code, path=strangers)
    assert (done.stdout, done.stderr) == (
        "their runtime | their workflows | holdfast.runtime.history.log\n",
        "",
    )


def test_without_strangers_the_names_are_plain(tmp_path: Path) -> None:
    """Where nobody else has them, our packages are imported by their own names."""
    done = run("-c", "import holdfast; print(holdfast.EventLog.__module__)", path=tmp_path)
    assert done.stdout == "runtime.history.log\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines (in {file})"),
        ("", "AttributeError: module 'typer' has no attribute 'Option' (in {file})"),
        (
            "import no_such_package",
            "ModuleNotFoundError: No module named 'no_such_package' (in {file})",
        ),
    ],
)
def test_what_is_in_the_way_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    """A stranger in the place of a package that Holdfast needs is named, with exit code 2 and no
    traceback.
    """
    stranger = tmp_path / "typer.py"
    stranger.write_text(text + "\n")
    done = run("-m", "holdfast", "--version", path=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"error: holdfast cannot start: {told.format(file=stranger)}\n"


def test_the_traceback_is_there_for_who_asks(tmp_path: Path) -> None:
    """``HOLDFAST_DEBUG`` shows it, and with 0 does not."""
    (tmp_path / "typer.py").write_text("raise RuntimeError('no')\n")
    done = run("-m", "holdfast", "--version", path=tmp_path, HOLDFAST_DEBUG="1")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    quiet = run("-m", "holdfast", "--version", path=tmp_path, HOLDFAST_DEBUG="0")
    assert quiet.returncode == 2
    assert quiet.stderr.startswith("error: ")


@pytest.mark.server
def test_a_job_runs_among_strangers(strangers: Path, tmp_path: Path) -> None:
    """A whole job, with the processes that it starts, runs where every name of ours is taken."""
    import arro3.core
    import arro3.io

    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "a.json").write_text(REPLIES)
    table = arro3.core.Table.from_pydict(
        {"column": arro3.core.Array([1, 2, 3], type=arro3.core.DataType.int64())}
    )
    arro3.io.write_parquet(table, str(tmp_path / "numbers.parquet"))
    home = {"HOLDFAST_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = run("-m", "holdfast", "run", "jobs.yaml", path=strangers, cwd=tmp_path, **home)
    assert done.returncode == 0, done.stderr
    shown = run("-m", "holdfast", "show", "a@2", path=strangers, cwd=tmp_path, **home)
    assert "column: " in shown.stdout
    assert "1 columns, 3 rows" in shown.stdout


def test_an_interrupt_while_it_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    """Ctrl-C at once, before any command is there to hear it."""
    # As Python raises it of the signal, which whoever starts the tests may have had ignored.
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    done = run("-m", "holdfast", "--version", path=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
