"""The examples of docs/python.md do what the page says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = dict(
    re.findall(
        r"<!-- example: (\w+) -->\n```python\n(.*?)^```$",
        (ROOT / "docs" / "python.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
JOBS = """
batch: example
defaults: {workspace: .}
jobs:
  - {id: first, goal: g, model: scripted/first.json}
  - {id: second, goal: g, model: scripted/second.json}
"""


def environment(folder: Path) -> dict[str, str]:
    """A state directory of its own, and nothing else."""
    return {"PYTHONPATH": str(ROOT), "HOLDFAST_HOME": str(folder / "home"), "HOME": str(folder)}


def run(name: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a script in ``folder``, with a state directory of its own."""
    script = folder / f"{name}_example.py"
    script.write_text(EXAMPLES[name])
    return subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env={**environment(folder), **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_short(name: str) -> None:
    """At most twenty lines, but for empty ones."""
    assert len([line for line in EXAMPLES[name].splitlines() if line]) <= 20


@pytest.mark.parametrize("name", holdfast.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    """Each is used by an example, and has its place on the page that is made from docstrings."""
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for example in EXAMPLES.values()
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    assert name in used
    page = (ROOT / "docs" / "api.md").read_text()
    assert f"\n::: holdfast.{name}\n" in page


def test_the_example_of_a_tool(tmp_path: Path) -> None:
    """A tool is still the function that it was."""
    done = run("tool", tmp_path)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_example_of_events(tmp_path: Path) -> None:
    """A condensation puts a summary in the place of what it forgets."""
    done = run("events", tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "9 events, 9 shown",
        "10 events, ['1', '5.1-summary', '2.1', '2.2', '3.1', '3.2', '4.1', '4.2']",
        "events",
    ]


@pytest.mark.slow
def test_the_example_of_errors(tmp_path: Path) -> None:
    """A mistake in a jobs file is told with its line, and nothing is started."""
    (tmp_path / "mistaken.yaml").write_text("jobs:\n  - {id: a, gaol: g}\n")
    done = run("errors", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing was started: mistaken.yaml:2: ")
    assert "gaol" in done.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.server
def test_the_examples_that_run_jobs(tmp_path: Path) -> None:
    """Jobs run to their ends, one of them without success; given again they are done, or run anew;
    the archive tells of all.
    """
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "first.json").write_text('[{"code": "x = 1"}, {"code": "finish({\'n\': x})"}]')
    (tmp_path / "second.json").write_text('[{"text": "no"}, {"text": "no"}, {"text": "no"}]')
    done = run("run", tmp_path)
    assert done.stderr == ""
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("first succeeded {'n': 1} 2 turns, ")]
    assert [line for line in lines if line.startswith("second failed None ")]
    assert (
        len(
            [
                line
                for line in lines
                if line.startswith(f"archived in {tmp_path}/home/archive as example/")
            ]
        )
        == 2
    )

    done = run("stream", tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "{'first': 'done', 'second': 'rerun'}"
    assert lines[1] == "first succeeded {'n': 1}"
    assert lines[-1] == "second failed None"

    done = run("results", tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("first ended by finish, 2 calls, ")
    assert lines[1].startswith("second ended as failed: ")

    done = run("archive", tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split()[0:2] for line in lines if line.startswith("example/first ")][:2] == [
        ["example/first", "1"],
        ["example/first", "2"],
    ]
    assert (
        len(
            [
                line
                for line in lines
                if line.startswith("example/second ") and line.endswith(" failed None")
            ]
        )
        == 2
    )


@pytest.mark.server
def test_the_example_of_a_worker(tmp_path: Path) -> None:
    """A project with a module ``workflows`` has jobs as children of its own sandboxed workflow, and
    the commands know them.
    """
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "first.json").write_text('[{"code": "x = 1"}, {"code": "finish({\'n\': x})"}]')
    (tmp_path / "second.json").write_text("[]")
    (tmp_path / "workflows.py").write_text(EXAMPLES["workflows"])
    up = command(tmp_path, "up", "--json")
    try:
        done = run("worker", tmp_path, SERVER=json.loads(up.stdout)["address"])
        assert (done.stdout, done.stderr) == ("two succeeded {'n': 1} after 2 turns\n", "")
        jobs = json.loads(command(tmp_path, "ls", "--json").stdout)
        assert [(job["job"], job["status"]) for job in jobs] == [
            ("example/one", "succeeded"),
            ("example/two", "succeeded"),
        ]
        assert command(tmp_path, "verify", "--all").returncode == 0
    finally:
        command(tmp_path, "down")


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Give a command on the examples' state directory."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
