"""Deletions and holds beside a job whose hold, or whose tombstone, is damaged."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.cli.main import main
from tests.cli.command_line import damage

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, write_run


@pytest.fixture
def archive(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The jobs ``fine``, ``held``, ``kept``, of which two are held, and ``gone``, deleted."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    store = open_store(str(tmp_path / "archive"))
    for job in ("fine", "gone", "held", "kept"):
        written = Written(JobArchive(store, "old", job))
        written.archive.write_definition({"goal": "Find files", "model": "openai/m-1"})
        last = write_run(written, "a", range(1, 2), None, chat(random.Random(2), 20))
        ended = NewEnd(
            run="a", turn=1, parent=last, status="failed", ended_at="2026-01-01T00:00:00+00:00"
        )
        written.archive.write_end(ended)
    for words in (["hold", "old/held"], ["hold", "old/kept"], ["delete", "old/gone"]):
        assert main(["archive", *words, "--reason", "case 7", "--by", "legal"]) == 0
    return tmp_path / "archive"


def test_a_hold_that_cannot_be_read_keeps_its_job_alone(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``prune`` and ``delete`` name the job that stays, and the list of holds has the others."""
    damage(archive / "_holdfast/holds/old/held/0001")
    capsys.readouterr()
    assert main(["archive", "prune", "--status", "failed", "--yes"]) == 0
    out = capsys.readouterr().out
    assert "old/held: stays: it may be held, or half deleted: _holdfast/holds/old/held/0001" in out
    assert "old/kept: stays: it is held: legal hold by legal" in out
    assert "old/fine: " in out and not (archive / "old/fine/ends/a").exists()
    assert main(["archive", "delete", "old/held", "--reason", "asked"]) == 2
    assert "old/held may be held" in capsys.readouterr().err
    assert (archive / "old/held/ends/a").exists()
    assert main(["archive", "hold"]) == 4
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith("old/kept: legal hold by legal")
    assert "_holdfast/holds/old/held/0001" in told.err


def test_a_tombstone_that_cannot_be_read_fails_no_other_deletion(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only deleted jobs used stays, which is said; the job is gone."""
    damage(archive / "_holdfast/tombstones/old/gone/0001")
    (archive / "_holdfast/summaries").mkdir()
    capsys.readouterr()
    store = open_store(str(archive))
    store.put_if_absent("_holdfast/summaries/5e", b"{}")
    assert main(["archive", "delete", "old/fine", "--reason", "asked"]) == 0
    told = capsys.readouterr()
    assert "old/fine: " in told.out and not (archive / "old/fine/ends/a").exists()
    assert "stay, since what names them cannot be read: _holdfast/tombstones/old/gone/0001" in (
        told.err
    )
