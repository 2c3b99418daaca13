"""How much of an archive ``holdfast log`` reads."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.packed import PackedStore
from runtime.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, write_run


@pytest.mark.slow
def test_log_reads_each_step_once_and_lists_no_folder_by_turn(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each step of a run is one read, and 90 turns take the listings that 30 do."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    store = open_store(str(tmp_path / "archive"))
    for job, turns in (("short", 30), ("long", 90)):
        written = Written(JobArchive(store, "nightly", job))
        written.archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
        last = write_run(written, "a", range(1, turns + 1), None, chat(random.Random(2), 20))
        end = NewEnd(run="a", turn=turns, parent=last, status="succeeded")
        written.archive.write_end(end)
    read: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    get, listing = PackedStore.get, DirectoryStore.list
    monkeypatch.setattr(PackedStore, "get", lambda s, key: (read.update([key]), get(s, key))[1])
    monkeypatch.setattr(
        DirectoryStore, "list", lambda s, prefix: (listed.update([prefix]), listing(s, prefix))[1]
    )
    listings = []
    for job, turns in (("short", 30), ("long", 90)):
        read.clear()
        listed.clear()
        assert main(["log", job, "--store", str(tmp_path / "archive")]) == 0
        assert len(capsys.readouterr().out.splitlines()) == turns + 2
        steps = [times for key, times in read.items() if key.endswith(".step")]
        assert steps == [1] * turns
        listings.append(listed.total())
    assert listings[0] == listings[1]
