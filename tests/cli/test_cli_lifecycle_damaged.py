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
    assert "old/held: it may be held" in capsys.readouterr().err
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


def test_an_effect_that_cannot_be_read_keeps_what_it_may_show(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, with what to do; then the same deletion, given again, takes what nobody uses."""
    store = open_store(str(archive))
    shown, alone = (f"_holdfast/summaries/{name}" for name in ("5e", "5f"))
    for key in (shown, alone):
        store.put_if_absent(key, b"{}")
    JobArchive(store, "old", "fine").write_effect("a", 1, 0, {}, uses=[shown, alone])
    JobArchive(store, "old", "held").write_effect("a", 1, 0, {}, uses=[shown])
    effect = archive / "old/held/turns/a/00000/0000001.effect-000000"
    whole = effect.read_bytes()
    damage(effect)
    capsys.readouterr()
    delete = ["archive", "delete", "old/fine", "--reason", "asked"]
    assert main(delete) == 0
    told = capsys.readouterr().err
    assert "old/held/turns/a/00000/0000001.effect-000000 is damaged" in told
    assert "Once that is restored, or its job deleted too, a later deletion takes them" in told
    assert (archive / shown).exists() and (archive / alone).exists()
    effect.write_bytes(whole)
    assert main(delete) == 0
    assert (archive / shown).exists() and not (archive / alone).exists()


def test_a_start_that_cannot_be_read_keeps_the_jobs_of_its_batch(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any of them may be what its job was forked from; deleted with them, it keeps none."""
    damage(archive / "old/kept/runs/a")
    capsys.readouterr()
    assert main(["archive", "delete", "old/fine", "--reason", "asked"]) == 2
    told = capsys.readouterr().err
    assert (
        "nothing was deleted: old/fine: it may be what old/kept was forked from: old/kept/runs/a"
        in (told)
    )
    assert "(restore what cannot be read, or delete old/kept too)" in told
    assert (archive / "old/fine/ends/a").exists()
    assert main(["archive", "release", "old/kept", "--reason", "settled"]) == 0
    assert main(["archive", "delete", "old/fine", "old/kept", "--reason", "asked"]) == 0
    assert not (archive / "old/kept/ends/a").exists()
