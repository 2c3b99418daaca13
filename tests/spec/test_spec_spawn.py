"""``spawn`` in a jobs file: how many sub-jobs a job may start, and what each is lent."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.base.errors import InputError
from runtime.base.spec.models import BatchSpec, ModelSettings, Spawn
from runtime.jobsfile.changes import changes, definition_digest
from runtime.jobsfile.dump import resolved_yaml
from runtime.jobsfile.load import load_jobs_file


def loaded(path: Path, defaults: str, job: str = "") -> BatchSpec:
    file = path / "jobs.yaml"
    file.write_text(
        f"defaults:\n  model: openai/m\n  workspace: .\n{defaults}jobs:\n- id: a\n  goal: g\n{job}"
    )
    return load_jobs_file(file)


def test_sub_jobs_are_allowed_by_the_file_alone(tmp_path: Path) -> None:
    """By the defaults or a job, which may take them back; what is left out is as documented."""
    assert loaded(tmp_path, "").jobs[0].spawn is None
    spawn = "  spawn: {max: 3, usd: 0.5, model: openai/small}\n"
    found = loaded(tmp_path, spawn).jobs[0].spawn
    assert found == Spawn(
        max=3, depth=1, turns=20, tokens=500_000, usd=0.5, model=ModelSettings(name="openai/small")
    )
    assert loaded(tmp_path, spawn, "  spawn: null\n").jobs[0].spawn is None
    assert loaded(tmp_path, spawn, "  spawn: {}\n").jobs[0].spawn == Spawn()


def test_it_is_printed_so_that_it_is_read_back(tmp_path: Path) -> None:
    """``--print-config`` gives the same batch again."""
    batch = loaded(tmp_path, "  spawn: {depth: 2, model: {name: openai/small, top_p: 1}}\n")
    again = tmp_path / "again"
    again.mkdir()
    (again / "jobs.yaml").write_text(resolved_yaml(batch))
    assert load_jobs_file(again / "jobs.yaml") == batch


def test_a_change_is_told_by_its_key(tmp_path: Path) -> None:
    """Whoever allows more sub-jobs has changed the job."""
    [old] = loaded(tmp_path, "  spawn: {}\n").jobs
    [new] = loaded(tmp_path, "  spawn: {max: 11}\n").jobs
    assert changes(old, new) == ["spawn.max: 10 -> 11"]
    assert definition_digest(old) != definition_digest(new)


@pytest.mark.parametrize(
    ("spawn", "told"),
    [
        ("{max: 0}", "spawn.max"),
        ("{depth: 9}", "spawn.depth"),
        ("{usd: -1}", "spawn.usd"),
        ("{usd: 1.0e+308}", "spawn.usd"),
        ("{goals: 1}", "goals"),
        ("{model: scripted/none.py}", "expected the file of a script"),
        ("true", "spawn"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, spawn: str, told: str) -> None:
    """With the key, before anything is started."""
    with pytest.raises(InputError) as error:
        loaded(tmp_path, f"  spawn: {spawn}\n")
    assert told in str(error.value)
