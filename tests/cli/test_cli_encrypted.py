"""A batch whose payloads are encrypted: nothing of it stands in Temporal's database."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from runtime.cli.main import main
from runtime.server.authentic.compression import COMPRESSED
from tests.cli.command_line import CommandLine, script

GOAL, STATEMENT, RESULT, TOLD = "goal-of-nobody", "word_of_nobody", "end-of-nobody", "no-of-nobody"
KEYS = "HOLDFAST_ENCRYPTION_KEYS"


def database(home: Path) -> bytes:
    """All bytes of the server's database, that are written or still in its log."""
    files = sorted((home / "server").glob("temporal.db*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


def run(cli: CommandLine, batch: str) -> None:
    cli.write(
        "a.json", script(f"{STATEMENT} = 1", f'raise ValueError("{TOLD}")', f'finish("{RESULT}")')
    )
    (cli.path / "ws").mkdir(exist_ok=True)
    file = cli.write(
        "jobs.yaml",
        f"batch: {batch}\ndefaults: {{workspace: ./ws}}\njobs:\n"
        f"  - {{id: a, goal: {GOAL}, model: scripted/a.json}}\n",
    )
    done = cli("run", file, "--json")
    assert done.code == 0, done.err
    assert done.summary()["a"]["result"] == RESULT
    assert done.summary()["a"]["turns"] == 3


def found(home: Path) -> set[str]:
    """Which of the job's words stand in the database."""
    stored = database(home)
    return {word for word in (GOAL, STATEMENT, RESULT, TOLD) if word.encode() in stored}


def test_nothing_of_a_job_stands_in_the_database(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys no word of the job is found, after a replay neither; without, the same search finds
    them. The job is verified with its history as any other.
    """
    assert main(["up"]) == 0
    key = base64.b64encode(b"k" * 32).decode()
    monkeypatch.setenv(KEYS, f"one {key}")
    run(own_cli, "secret")
    assert found(own_cli.home) == set()
    # What is only compressed would not be found.
    assert COMPRESSED not in database(own_cli.home)
    assert own_cli("verify", "secret/a").code == 0
    again = own_cli("replay", "secret/a", "--from", "2", "--mode", "reexecute", "--frozen")
    assert again.code == 0, again.err
    assert found(own_cli.home) == set()
    monkeypatch.setenv(KEYS, f"two {base64.b64encode(b'l' * 32).decode()}")
    runs = own_cli("log", "secret/a", "--graph", "--json").json()["runs"]
    for command in (["replay", "secret/a", "--from", "2"], ["run", own_cli.path / "jobs.yaml"]):
        refused = own_cli(*command)
        assert refused.code != 0
        assert "encrypted with a key that is not here" in refused.err
        assert "'one'" in refused.err or "(one)" in refused.err
    assert own_cli("log", "secret/a", "--graph", "--json").json()["runs"] == runs
    monkeypatch.delenv(KEYS)
    run(own_cli, "open")
    assert found(own_cli.home) >= {STATEMENT}


def test_nothing_of_a_job_stands_on_the_disk(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in Temporal's database nor in an archive that was made encrypted, where no frame of
    zstd is found either; it is verified, and read by those who have the keys alone.
    """
    assert main(["up"]) == 0
    monkeypatch.setenv(KEYS, f"one {base64.b64encode(b'k' * 32).decode()}")
    archive = own_cli.home / "archive"
    assert own_cli("archive", "create", archive).code == 0
    run(own_cli, "hidden")
    assert found(own_cli.home) == set()
    objects = [path.read_bytes() for path in archive.rglob("*") if path.is_file()]
    assert len(objects) > 6
    words = (GOAL, STATEMENT, RESULT, TOLD)
    assert not any(word.encode() in data for data in objects for word in words)
    assert not any(b"\x28\xb5\x2f\xfd" in data for data in objects)
    assert own_cli("verify", "--all").code == 0
    assert STATEMENT in own_cli("show", "hidden/a@1", "--part", "statement").out
    monkeypatch.delenv(KEYS)
    refused = own_cli("log", "hidden/a")
    assert (refused.code, "is encrypted, at first with the key 'one'" in refused.err) == (2, True)


def test_why_a_call_is_tried_again_is_told_to_who_has_the_key(
    own_cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason of an attempt is encrypted as all that a worker says."""
    monkeypatch.setenv(KEYS, f"one {base64.b64encode(b'k' * 32).decode()}")
    failure = {"status": 500, "message": TOLD}
    own_cli.write("a.json", json.dumps([{"code": "finish(1)", "fail": failure, "times": 3}]))
    done = own_cli("run", own_cli.jobs("id: a, model: scripted/a.json", batch="tried"))
    assert done.code == 0, done.err
    assert f"after ServerError: {TOLD}" in done.out
    assert TOLD not in found(own_cli.home)
