"""What ``holdfast log`` says of how a job ended."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.values import Usage
from runtime.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, step_record, write_run


@pytest.fixture
def where(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The place of an archive, for commands with a state directory of their own."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return str(tmp_path / "archive")


@pytest.mark.parametrize(
    ("end", "line"),
    [
        ({"status": "succeeded", "reason": "finished"}, "end: succeeded"),
        ({"status": "failed", "reason": "no key\nat all"}, "end: failed: no key at all"),
        (
            {"status": "succeeded", "unread": 1},
            "end: succeeded; 1 message came too late to be read",
        ),
        (
            {"status": "budget", "reason": "spent", "unread": 2},
            "end: budget: spent; 2 messages came too late to be read",
        ),
    ],
)
def test_the_last_line_says_how_it_ended(
    where: str,
    capsys: pytest.CaptureFixture[str],
    end: dict[str, Any],
    line: str,
) -> None:
    """With the reason where it did not succeed, and with messages that no turn began with."""
    written = Written(JobArchive(open_store(where), "nightly", "one"))
    written.archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    last = write_run(written, "a", range(1, 3), None, chat(random.Random(2), 20))
    written.archive.write_end(NewEnd(run="a", turn=2, parent=last, **end))
    assert main(["log", "one", "--store", where]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert main(["log", "one", "--store", where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["end"].get("unread", 0) == end.get("unread", 0)


def test_an_attempt_over_which_a_worker_died_is_in_the_last_turns_figures(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the job's end, where the turn has no reply: its figures add up to those of ``cost``."""
    written = Written(JobArchive(open_store(where), "nightly", "one"))
    written.archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    layout_at = chat(random.Random(2), 20)
    last = write_run(written, "a", range(1, 3), None, layout_at)
    shown = layout_at(3, written.archive.layout(last), written.archive.reply_segment(last))
    written.begin("a", 3, last, shown)
    used = Usage(prompt=101 + 102 + 700, completion=24)
    written.archive.write_end(
        NewEnd(run="a", turn=3, parent=last, status="cancelled", usage=used, cost_usd=0.252)
    )
    assert main(["log", "one", "--store", where]) == 0
    line = capsys.readouterr().out.splitlines()[-2]
    assert line.endswith("(1 attempt, on failed ones about 700 tokens, $0.2500)")
    assert main(["cost", "one", "--store", where, "--json"]) == 0
    [job] = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["prompt"], job["failed_tokens"], job["failed_usd"]) == (903, 700, 0.25)


def test_a_turn_in_which_the_clock_was_set_back(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """How long its call took is not known, and no span of it ends before it begins."""
    written = Written(JobArchive(open_store(where), "nightly", "one"))
    layout = chat(random.Random(2), 20)(1, (), None)
    record = step_record("a", 1, written.begin("a", 1, None, layout))
    written.finished(record.model_copy(update={"finished_at": "2025-12-31T23:00:00Z"}))
    assert main(["log", "one", "--store", where]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "$0.0010" in line)
    assert line.split("$0.0010")[1].split() == ["x", "=", "1"]
    assert main(["export", "one", "--store", where, "--format", "otel"]) == 0
    spans = [
        json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert len(spans) == 2
    assert all(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) for s in spans)


def test_a_job_by_a_name_that_is_no_text(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """There is none, and nothing unexpected."""
    archive = JobArchive(open_store(where), "nightly", "one")
    archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    assert main(["log", "nightly/\udcff", "--store", where]) == 2
    said = "error: expected Unicode text, got 'nightly/\\udcff'\n"
    assert capsys.readouterr().err == said
