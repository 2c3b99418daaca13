"""What a command imports: those that read the archive start without what talks to servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.archive.catalog import all_jobs
from runtime.archive.stores import open_existing
from tests.releases.record import releases

HEAVY = {
    "aiohttp",
    "boto3",
    "httpx",
    "jsonschema",
    "litellm",
    "mcp",
    "pydantic_monty",
    "rich",
    "ruamel",
    "temporalio",
    "tiktoken",
    "tree_sitter",
}
"""What takes long to import."""

OWN = {
    "runtime.client.control",
    "runtime.client.planning",
    "runtime.client.plans",
    "runtime.client.submission",
    "runtime.client.wishes",
    "runtime.context.states",
    "runtime.history",
    "runtime.worker",
    "workflows.job",
}
"""Rooms that a command has no use for which only reads."""

PROGRAM = """
import os, sys
from runtime.cli.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
print(code, *sys.modules, file=sys.stderr)
"""


NOT_BEFORE_WORK = {
    "activities.model",
    "aiohttp",
    "boto3",
    "httpx",
    "jsonschema",
    "litellm",
    "mcp",
    "openai",
    "pathspec",
    "pydantic_monty",
    "runtime.client.forks",
    "runtime.sandbox",
    "runtime.worker.worker",
    "temporalio.worker",
    "tree_sitter",
    "workflows.batch",
    "workflows.job",
}
"""What ``run`` loads only once there is a job to work on."""

PLANNED = """
import sys
from pathlib import Path
from runtime.cli import running
from runtime.client.preflight import check
from runtime.jobsfile.load import load
loaded = load(Path(sys.argv[1]))
check(loaded, loaded.batch.store)
running.Control, running.connect
print(0, *sys.modules, file=sys.stderr)
"""
"""``run`` as far as the question to the server."""

PREPARED = """
import sys
from runtime.base.values import JobKey, Usage
from runtime.archive import forms
built = [
    name
    for name, form in vars(forms).items()
    if getattr(form, "__pydantic_complete__", False) and form.__module__.startswith("runtime.")
]
print(0, *built, file=sys.stderr)
"""
"""The archive's forms whose validators are made by importing them."""


WORKING = """
import os, sys
from runtime.cli.main import entry
def told(code):
    print(code, *(name for name, module in sys.modules.items() if module), file=sys.stderr)
os._exit = told
sys.argv[0] = "holdfast"
entry()
"""
"""A command as the console script gives it: what ends the process tells what it has loaded."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive in a directory, with jobs that have ended."""
    return releases()[0].unpack(tmp_path_factory.mktemp("release"))[0]


def imported(*arguments: str, program: str = PROGRAM, **more: str) -> set[str]:
    """The modules of a process that carried a command out, with ``more`` in its environment."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *names = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(names)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ls", "show", "log", "nodes", "diff", "blame"])
def test_commands_that_read_a_directory_import_what_that_needs(command: str, archive: Path) -> None:
    """No server's client, no provider's, no store's on a network."""
    job = str(next(iter(all_jobs(open_existing(str(archive))))))
    where = {"ls": [], "log": [job], "diff": [f"{job}@2"]}.get(command, [f"{job}@1"])
    names = imported(command, *where, "--store", str(archive))
    assert {name for name in names if name.partition(".")[0] in HEAVY} == set()
    assert names & OWN == set()


def test_asking_for_help_imports_no_job_at_all() -> None:
    """Nor does any command need more before it knows what it is to do."""
    names = imported("--help")
    assert {name for name in names if name.partition(".")[0] in HEAVY} == set()
    assert {name for name in names if name.startswith(("workflows.", "activities."))} == set()
    assert (
        names & {"pydantic", "asyncio", "runtime.base.spec.models", "runtime.archive.job"} == set()
    )


@pytest.mark.slow
def test_run_loads_no_worker_before_it_knows_that_there_is_work(tmp_path: Path) -> None:
    """A jobs file that is done already costs what reading it and asking for it costs."""
    script = tmp_path / "s.py"
    script.write_text("def respond(messages):\n    return {'code': 'finish(1)'}\n")
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text("jobs:\n  - {id: one, goal: Go., workspace: ., model: scripted/s.py}\n")
    names = imported(str(jobs), program=PLANNED)
    assert names & NOT_BEFORE_WORK == set()


@pytest.mark.slow
def test_a_check_of_models_loads_no_command_line_of_httpx(tmp_path: Path) -> None:
    """It comes with click, rich and pygments, which a worker would have for nothing."""
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text("jobs:\n  - {id: one, goal: Go., workspace: ., model: openai/gpt-4o}\n")
    given = {"OPENAI_API_KEY": "none", "HOLDFAST_HOME": str(tmp_path / "home")}
    names = imported("run", str(jobs), "--dry-run", program=WORKING, **given)
    assert {"httpx", "litellm"} <= names
    assert names & {"click", "httpx._main", "pygments", "rich"} == set()


def test_no_value_is_prepared_before_it_is_used() -> None:
    """The validators of some hundred classes take longer to make than most commands run."""
    assert imported(program=PREPARED) == set()
