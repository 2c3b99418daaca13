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
from runtime.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, write_run


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
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    end: dict[str, Any],
    line: str,
) -> None:
    """With the reason where it did not succeed, and with messages that no turn began with."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    where = str(tmp_path / "archive")
    written = Written(JobArchive(open_store(where), "nightly", "one"))
    written.archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
    last = write_run(written, "a", range(1, 3), None, chat(random.Random(2), 20))
    written.archive.write_end(NewEnd(run="a", turn=2, parent=last, **end))
    assert main(["log", "one", "--store", where]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert main(["log", "one", "--store", where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["end"].get("unread", 0) == end.get("unread", 0)
