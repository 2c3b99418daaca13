"""``holdfast archive prune`` that is killed, and given again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.archive.catalog import all_jobs
from runtime.archive.forms import NewEnd
from runtime.archive.lifecycle.holds import FOLDER as HOLDS
from runtime.archive.lifecycle.tombstones import FOLDER
from runtime.archive.references import SHARED
from runtime.archive.stores import open_store, removing
from runtime.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import rich_archive

PRUNE = ("archive", "prune", "--status", "succeeded,failed")


@pytest.mark.kill
@pytest.mark.parametrize("point", ["after_tombstone", "mid_job:1", "mid_job:9", "mid_sweep:1"])
def test_a_prune_that_is_killed_goes_on(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    point: str,
) -> None:
    """A job whose end is gone already is taken too, and what only deleted jobs used; another batch
    is left alone, and so is a job that is held meanwhile.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    store = open_store(str(tmp_path / "archive"))
    # Their ends are of no time, and no rule lets such a job go.
    for name, written in rich_archive(store).items():
        (end,) = store.list(f"nightly/{name}/ends/")
        removing(store).remove(end)
        run = end.rpartition("/")[2]
        turn = max(turn for of, turn in written.refs if of == run)
        ended = NewEnd(
            run=run,
            turn=turn,
            parent=written.refs[run, turn],
            status="succeeded",
            ended_at="2026-01-01T01:00:00+00:00",
        )
        written.archive.write_end(ended)
    killed = subprocess.run(
        [sys.executable, "-m", "holdfast", *PRUNE, "--yes"],
        env={**os.environ, "HOLDFAST_FAILPOINT": f"archive.delete.{point}"},
        timeout=200,
    )
    assert killed.returncode == -signal.SIGKILL
    left = set(store.list("nightly/"))

    assert main([*PRUNE, "--batch", "other", "--yes"]) == 0
    assert set(store.list("nightly/")) == left
    capsys.readouterr()
    assert main(list(PRUNE)) == 0
    broken_off = "archive prune --status succeeded,failed, which was broken off"
    assert (broken_off in capsys.readouterr().out) == ("mid_sweep" not in point)

    if left:
        (job, *_) = (str(key) for key in all_jobs(store))
        assert main(["archive", "hold", job, "--reason", "case 7"]) == 0
        capsys.readouterr()
        assert main([*PRUNE, "--yes"]) == 0
        assert f"{job}: stays: it is held: legal hold by" in capsys.readouterr().out
        assert set(store.list(f"{job}/")) == {key for key in left if key.startswith(f"{job}/")}
        assert main(["archive", "release", job, "--reason", "settled"]) == 0

    assert main([*PRUNE, "--yes"]) == 0
    assert list(store.list("nightly/")) == []
    graves = set(store.list(FOLDER))
    others = (FOLDER, HOLDS)
    rest = {key for key in store.list(SHARED) if not key.startswith(others)}
    assert rest <= {f"{SHARED}archive", f"{SHARED}id"}
    capsys.readouterr()
    assert main([*PRUNE, "--yes"]) == 0
    assert capsys.readouterr().out == "nothing to delete\n"
    assert set(store.list(FOLDER)) == graves
