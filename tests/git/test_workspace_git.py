"""``workspace export --git``: a repository that git itself reads; ``--agent-trace``: which lines
the job wrote.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runtime.base.digests import digest_bytes
from tests.cli.command_line import ROOT, CommandLine
from tests.git.conftest import STATEMENTS
from tests.git.jobs import RUN, written_tree


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "core.quotePath=true", *arguments],
        cwd=folder, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.fixture
def repository(cli: CommandLine, tmp_path: Path) -> Path:
    """The job ``one`` as a repository."""
    done = cli("workspace", "export", "one", "--git", tmp_path / "repo")
    assert done.code == 0, done.err
    return tmp_path / "repo"


def test_a_commit_for_each_statement_that_changed_files(cli: CommandLine, repository: Path) -> None:
    """With its first line as subject, its source, its step as a trailer, its model and time."""
    # git's own ISO dates end in Z from 2.45 on.
    told = ("--format=%s|%an|%ae|%ad", "--date=format:%Y-%m-%dT%H:%M:%S%z")
    assert git(repository, "log", "--reverse", *told).splitlines() == [
        "What the job began with|holdfast|one@hands.invalid|2026-01-01T00:41:01+0000",
        'edit("pkg/a.py", "two", "TWO")|openai/m-1|one@hands.invalid|2026-01-01T01:00:01+0000',
        "# change much|openai/m-1|one@hands.invalid|2026-01-01T01:00:03+0000",
        'move("pkg/b.py", "pkg/moved.py")|openai/m-1|one@hands.invalid|2026-01-01T01:00:04+0000',
        'edit("pkg/moved.py", "gamma", "GAMMA\\nand more")|openai/m-1|one@hands.invalid'
        "|2026-01-01T01:00:05+0000",
    ]
    step = cli.archive("hands", "one").find_step(RUN, 1)
    assert step is not None
    trailer = "--format=%(trailers:key=Holdfast-Step,valueonly)"
    assert git(repository, "log", trailer, "-1", "HEAD~3").strip() == (
        f"{step.ref.key} {step.ref.digest}"
    )
    assert STATEMENTS[0][0] in git(repository, "log", "--format=%b", "-1", "HEAD~3")
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "fsck", "--strict", "--no-dangling") == ""


def test_the_working_files_are_the_versions(
    cli: CommandLine, repository: Path, tmp_path: Path
) -> None:
    """Also what git has not: empty directories, other modes. The same commits come out again."""
    cli("workspace", "export", "one", tmp_path / "plain")
    cli("workspace", "export", "one", "--git", tmp_path / "again")
    found = {k: v for k, v in written_tree(repository).items() if k.partition("/")[0] != ".git"}
    assert found == written_tree(tmp_path / "plain")
    assert git(repository, "rev-parse", "HEAD") == git(tmp_path / "again", "rev-parse", "HEAD")


@pytest.mark.parametrize("path", ["pkg/a.py", "pkg/moved.py", "new/n.txt"])
def test_git_blames_as_holdfast_does(cli: CommandLine, repository: Path, path: str) -> None:
    """Line by line, through the move."""
    steps = {step.ref.key: step.turn for step in cli.archive("hands", "one").steps(RUN)}
    turns = []
    for line in git(repository, "blame", "-l", "-s", path).splitlines():
        commit = line.split()[0].lstrip("^")
        key = git(
            repository, "log", "-1", "--format=%(trailers:key=Holdfast-Step,valueonly)", commit
        )
        turns.append(steps[key.split()[0]] if key.strip() else 0)
    found = cli("blame", "one", path, "--json").json()["lines"]
    assert [line["turn"] for line in found] == turns


def test_a_trace_names_the_lines_that_the_job_wrote(cli: CommandLine, tmp_path: Path) -> None:
    """By turn, with their digest; it has the published schema, and names the repository's head."""
    target = tmp_path / "trace.json"
    repository = tmp_path / "repo"
    done = cli("workspace", "export", "one", repository, "--git", "--agent-trace", target)
    assert done.code == 0, done.err
    record = json.loads(target.read_text())
    schema = json.loads((ROOT / "tests/git/agent-trace-0.1.json").read_text())
    assert list(Draft202012Validator(schema).iter_errors(record)) == []
    assert record["vcs"] == {
        "type": "git", "revision": git(repository, "rev-parse", "HEAD").strip()
    }  # fmt: skip
    files: dict[str, Any] = {one["path"]: one["conversations"] for one in record["files"]}
    assert sorted(files) == ["caf\\xe9.txt", "new/n.txt", "pkg/a.py", "pkg/moved.py"]
    assert files["pkg/moved.py"] == [
        {
            "url": "holdfast://hands/one@5",
            "contributor": {"type": "ai", "model_id": "openai/m-1"},
            "ranges": [
                {
                    "start_line": 3,
                    "end_line": 4,
                    "content_hash": digest_bytes(b"GAMMA\nand more\n"),
                }
            ],
        }
    ]
    again = tmp_path / "again.json"
    cli("workspace", "export", "one", "--agent-trace", again)
    told = json.loads(again.read_text())
    assert told == {key: value for key, value in record.items() if key != "vcs"}


def test_what_would_be_overwritten_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    """Nothing is written over what is there, or nowhere."""
    (tmp_path / "there").write_text("mine")
    for arguments, words in [
        (("one",), "name the DIR to write to"),
        (("one", "--git"), "name the DIR to write to"),
        (("one", "--agent-trace", tmp_path / "there"), "is there already"),
        (("one", tmp_path / "there"), "Not a directory"),
        (("one", "/proc/new"), "error: /proc/new cannot be written: "),
    ]:
        done = cli("workspace", "export", *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
    assert (tmp_path / "there").read_text() == "mine"
