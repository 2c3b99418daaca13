"""``holdfast verify`` starts from what should be there: by Temporal's list and histories, and by a
head that was kept elsewhere.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runtime.archive.pages import page_key, write_page
from runtime.archive.stores import open_store
from tests.cli.command_line import CommandLine, Done, script

pytestmark = pytest.mark.server


def two_jobs(cli: CommandLine, batch: str) -> Path:
    """Two jobs of two turns that have ended; where the batch's objects are."""
    cli.write("two.yaml", script("x = 1", "finish(x)"))
    file = cli.jobs(
        "id: one, model: scripted/two.yaml", "id: other, model: scripted/two.yaml", batch=batch
    )
    assert cli("run", file).code == 0
    return cli.home / "archive" / batch


def job_of(done: Done, name: str) -> dict[str, object]:
    return next(job for job in done.json()["jobs"] if job["job"] == name)


def damage_of(done: Done, name: str) -> list[str]:
    return [finding["key"] for finding in job_of(done, name)["damage"]]  # type: ignore[attr-defined, union-attr]


def test_a_job_that_vanished_is_missed(cli: CommandLine) -> None:
    """Nothing of it is left in the archive, and Temporal's list has it: both verify --all and
    verify JOB tell.
    """
    batch = two_jobs(cli, "vanished")
    assert job_of(cli("verify", "--all", "--json"), "vanished/one")["damage"] == []
    shutil.rmtree(batch / "one")
    everything = cli("verify", "--all", "--json")
    assert everything.code == 4
    keys = damage_of(everything, "vanished/one")
    assert "vanished/one/definition/0001" in keys
    assert any("/runs/" in key for key in keys)
    assert job_of(everything, "vanished/other")["damage"] == []
    alone = cli("verify", "vanished/one", "--json")
    assert (alone.code, damage_of(alone, "vanished/one")) == (4, keys)
    assert cli("verify", "vanished/nosuch").code == 2


def test_a_run_that_vanished_is_missed(cli: CommandLine) -> None:
    """The newest run of a job, with its start, turns and end: Temporal's history has its steps."""
    batch = two_jobs(cli, "norun")
    (run,) = cli.archive("norun", "one").runs()
    for folder in ("runs", "turns", "ends"):
        path = batch / "one" / folder / run
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = cli("verify", "norun/one", "--json")
    assert found.code == 4
    assert f"norun/one/runs/{run}" in damage_of(found, "norun/one")
    assert f"norun/one/ends/{run}" in damage_of(found, "norun/one")


def test_a_kept_head_finds_what_vanished_without_a_server(
    cli: CommandLine,
    signing_keys: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signed head covers all jobs: later verify --against tells what is gone or changed, and that
    growth is neither.
    """
    two_jobs(cli, "kept")
    store = ("--store", tmp_path / "copy")
    others = shutil.ignore_patterns("tombstones", "pages")  # Of other tests' jobs.
    for part in ("kept", "_holdfast"):
        shutil.copytree(cli.home / "archive" / part, tmp_path / "copy" / part, ignore=others)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HOLDFAST_SIGNING_KEY", str(signing_keys[0]))
    printed = cli("verify", "--head", *store)
    assert printed.code == 0
    monkeypatch.delenv("HOLDFAST_SIGNING_KEY")
    kept = cli.write("head.json", printed.out)
    head = json.loads(printed.out)
    assert head["digest"].startswith("sha256:")
    assert sum(key.startswith("kept/one/ends/") for key in head["tips"]) == 1
    whole = cli("verify", "--against", kept, *store, "--require-anchor", "--json")
    assert whole.code == 0, whole.out
    assert [a["kind"] for run in job_of(whole, "kept/one")["runs"] for a in run["anchors"]] == [
        "kept-head"
    ]  # type: ignore[attr-defined]
    cli.write("forged.json", printed.out.replace("kept/one/ends/", "kept/one/fins/"))
    assert cli("verify", "--against", "forged.json", *store).code == 2, "a path that is not there"
    forged = cli("verify", "--against", tmp_path / "forged.json", *store)
    assert (forged.code, "this head was altered" in forged.err) == (4, True)
    shutil.rmtree(tmp_path / "copy" / "kept" / "one")
    gone = cli("verify", "--against", kept, *store, "--json")
    assert gone.code == 4
    assert any("kept/one/ends/" in key for key in damage_of(gone, "kept/one"))
    assert damage_of(gone, "kept/other") == []
    # What jobs share is looked for where none of them is left.
    shutil.rmtree(tmp_path / "copy" / "kept" / "other")
    digest = write_page(open_store(str(tmp_path / "copy")), [{}])
    pages = cli.write("pages.json", cli("verify", "--head", *store).out)
    assert cli("verify", "--against", pages, *store).code == 0
    shutil.rmtree(tmp_path / "copy" / "_holdfast" / "pages")
    lost = cli("verify", "--against", pages, *store, "--json")
    assert (lost.code, lost.json()["jobs"]) == (4, [])
    assert [finding["key"] for finding in lost.json()["shared"]["damage"]] == [page_key(digest)]


def test_a_key_to_trust_must_have_signed_the_head_and_the_ends(
    cli: CommandLine,
    signing_keys: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """--public-key fails on an unsigned archive, and on an unsigned head."""
    two_jobs(cli, "unsigned")
    plain = cli("verify", "unsigned/one")
    assert plain.code == 0
    refused = cli("verify", "unsigned/one", "--public-key", signing_keys[1])
    assert (refused.code, "is not signed, and a key to trust was given" in refused.out) == (4, True)
    head = cli.write("head.json", cli("verify", "unsigned/one", "--head").out)
    unsigned = cli("verify", "--against", head, "--public-key", signing_keys[1])
    assert (unsigned.code, "is not signed" in unsigned.err) == (4, True)


def test_an_anchor_is_required_where_it_is_asked_for(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Temporal's history the chain is anchored; with the store alone it is only self-attested,
    and --require-anchor fails.
    """
    two_jobs(cli, "anchor")
    assert cli("verify", "anchor/one", "--require-anchor").code == 0
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    alone = ("verify", "anchor/one", "--store", cli.home / "archive")
    assert cli(*alone).code == 0
    failed = cli(*alone, "--require-anchor")
    assert (failed.code, "is only self-attested, and an anchor is required" in failed.out) == (
        4,
        True,
    )


def test_a_damaged_archive_has_no_head(cli: CommandLine) -> None:
    """No head is printed over what is broken already."""
    batch = two_jobs(cli, "broken")
    next((batch / "one" / "ends").iterdir()).unlink()
    refused = cli("verify", "broken/one", "--head")
    assert (refused.code, refused.out) == (4, "")
    assert "damaged: " in refused.err
