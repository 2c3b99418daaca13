"""``holdfast archive``: copies, legal holds, retention and deletion, as a user gives them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import UNHURRIED, CommandLine, Done, gated, script, wait_for
from tests.cli.test_cli_json import compare_with_the_pinned


@pytest.mark.server
def test_jobs_are_held_pruned_copied_and_deleted(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held stays and is named, a dry run deletes nothing, what is open is refused, a
    deletion is told by verify, and a copy is an archive of its own.
    """
    # Of its own: other tests damage the one that they share.
    archive = str(tmp_path / "archive")
    monkeypatch.setenv("HOLDFAST_STORE", archive)
    cli.write("one.yaml", script("x = 1", "finish(x)"))
    jobs = [f"id: {name}, model: scripted/one.yaml" for name in ("a", "b", "c")]
    assert cli("run", cli.jobs(*jobs, batch="old")).code == 0
    seen: dict[str, list[Any]] = {}

    def give(*arguments: str, code: int = 0) -> Any:
        done = cli("archive", *arguments, "--json")
        assert done.code == code, done.err
        document = done.json() if done.out else None
        if document is not None:
            seen.setdefault(f"archive {arguments[0]}", []).append(document)
        return document

    assert cli("archive", "hold") == Done(0, "no job is held\n", "")
    assert cli("archive", "hold", "--json").json() == []
    (held,) = give("hold", "old/a", "--reason", "case 7", "--by", "legal")
    assert (held["job"], held["by"], held["reason"]) == ("old/a", "legal", "case 7")
    assert [one["job"] for one in give("hold")] == ["old/a"]

    # A dry run: what would go, and what is held, by name.
    rules = ("prune", "--batch", "old", "--keep", "0")
    wait_for(
        lambda: len(cli("archive", *rules, "--json").json()["would_delete"]) == 2,
        "the batch itself has ended too",
    )
    dry = give(*rules)
    assert (dry["would_delete"], dry["deleted"]) == (["old/b", "old/c"], [])
    assert [one["job"] for one in dry["refused"]] == ["old/a"]
    assert "case 7" in dry["refused"][0]["why"]
    assert "old/b: would go: succeeded" in cli("archive", *rules).out

    # A copy of all that there is.
    copy = str(tmp_path / "copy")
    told = give("copy", archive, copy)
    assert told["objects"] > 0
    assert give("copy", archive, copy, "--compare")["objects"] == 0
    assert cli("verify", "old/b", "--store", copy).code == 0

    # What is held, or named in part, is not deleted.
    refused = cli("archive", "delete", "old/a", "--reason", "no")
    assert (refused.code, "old/a: it is held: legal hold by legal" in refused.err) == (2, True)
    assert cli("archive", "delete", "old", "--reason", "no").code == 2
    give("delete", "old/a", "--reason", "no", code=2)

    done = give("delete", "old/b", "--reason", "asked for", "--by", "alice")
    assert [one["job"] for one in done["deleted"]] == ["old/b"]
    alone = cli("verify", "old/b")
    assert (alone.code, "was deleted by alice at" in alone.out) == (0, True)
    assert "asked for" in cli("log", "old/b").err
    assert cli("verify", "old/c").code == 0

    give("release", "old/a", "--reason", "settled")
    pruned = give(*rules, "--yes", "--by", "cron")
    assert [one["job"] for one in pruned["deleted"]] == ["old/a", "old/c"]
    verdicts = {one["job"]: one for one in cli("verify", "--all", "--json").json()["jobs"]}
    for name in ("old/a", "old/b", "old/c"):
        assert verdicts[name]["damage"] == []
        assert [note["fault"] for note in verdicts[name]["notes"]] == ["deleted"]
    again = give("copy", archive, copy)
    assert {"old/a", "old/b", "old/c"}.isdisjoint(again["deleted"])
    compare_with_the_pinned(seen)


@pytest.mark.server
def test_a_deleted_job_is_told_where_its_file_is_run_again(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal has it as done, and it is not paid for again; of the other there is the result."""
    # Of its own: what other tests leave open or damage in the one that they share is told too.
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    cli.write("a.yaml", "- {code: finish(7)}")
    file = cli.jobs(*(f"id: {id}, model: scripted/a.yaml" for id in "ab"), batch="deleted")
    assert cli("run", file).code == 0
    delete = ("archive", "delete", "deleted/a", "--reason", "asked for", "--by", "ann")
    wait_for(lambda: cli(*delete).code == 0, "the batch itself has ended too")
    assert cli(*delete).out == "nothing was left to delete\n"
    again = cli("run", file)
    assert (again.code, "deleted/b: 7\n2 succeeded; " in again.out) == (0, True)
    (told,) = [line for line in again.err.splitlines() if line.startswith("deleted/a ")]
    assert re.fullmatch(
        r"deleted/a was deleted by ann at \S+: asked for\. It is done all the same, and nothing is"
        r" left of what came of it",
        told,
    )


@pytest.mark.server
def test_an_open_job_is_not_deleted(cli: CommandLine) -> None:
    """Neither it nor another job of its batch, while that runs."""
    gate = cli.path / "gate"
    cli.write("slow.py", gated(gate))
    cli.write("one.yaml", script("finish(1)"))
    file = cli.jobs(
        f"id: slow, model: scripted/slow.py, {UNHURRIED}",
        "id: quick, model: scripted/one.yaml",
        batch="open",
    )
    process = cli.start("run", file)
    wait_for(lambda: cli.turns("open", "slow") >= 1, "a turn has ended", process)
    refused = cli("archive", "delete", "open/slow", "--reason", "no")
    assert (refused.code, "open/slow: it is open" in refused.err) == (2, True)

    def told() -> str:
        other = cli("archive", "delete", "open/quick", "--reason", "no", "--unfinished")
        assert other.code == 2
        return other.err

    # Until it has ended it is refused for being open itself.
    wait_for(lambda: "its batch open runs" in told(), "the batch is told", process)
    gate.touch()
    assert cli.finished(process).code == 0
    wait_for(
        lambda: cli("archive", "delete", "open/slow", "--reason", "now").code == 0,
        "the batch itself has ended too",
    )
    assert "was deleted by" in cli("verify", "open/slow").out


def test_pruning_a_batch_that_the_archive_has_not_says_so(cli: CommandLine) -> None:
    """A name may be mistyped; what prunes each night begins before its batch does."""
    pruned = cli("archive", "prune", "--batch", "tpyo", "--older-than", "1d", "--json")
    assert (pruned.code, pruned.json()["would_delete"]) == (0, [])
    assert "the archive has no job of batch tpyo" in pruned.err


def test_bad_rules_are_bad_input(cli: CommandLine) -> None:
    """One clear error each, and nothing is deleted."""
    for arguments, words in (
        (["prune"], "give a rule"),
        (["prune", "--older-than", "soon"], "expected an age"),
        (["prune", "--status", "broken"], "expected some of"),
        (["copy", "a", "a"], "the same archive"),
        (["copy", "a", "b/../a/"], "the same archive"),
        (["copy", "a", "a/sub"], "one lies in the other"),
        (["copy", "s3://a/b/c", "s3://a/b"], "one lies in the other"),
        (["copy", str(cli.path / "none"), str(cli.path / "to")], "no archive"),
        (["release", "nobody/none", "--reason", "x"], "no job"),
    ):
        done = cli("archive", *arguments)
        assert (done.code, words in done.err) == (2, True), done.err
