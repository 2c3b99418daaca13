"""``holdfast replay`` killed on the way: the job is as it was, or it goes on as ordered; never something between."""

import signal

import pytest

from tests.cli.command_line import CommandLine, script

pytestmark = [pytest.mark.server, pytest.mark.kill]

STATEMENTS = ["n = 1", "n += 1", "text = open('data.txt').read()", "finish({'n': n, 'text': text})"]


@pytest.mark.parametrize("point", ["reset.before", "reset.after", "replay.after_claim"])
def test_a_killed_replay(cli: CommandLine, point: str) -> None:
    """Before the reset nothing has happened, and the same command does it; after it ``run`` goes on with the replay."""
    batch = f"killed-{point.replace('.', '-').replace('_', '-')}"
    job = f"{batch}/a"
    cli.write("ws/data.txt", "data\n")
    cli.write("a.json", script(*STATEMENTS))
    cli.write("edit.py", "n = 40")
    file = cli.jobs("id: a, model: scripted/a.json", batch=batch)
    assert cli("run", file).code == 0
    once = cli.path / "fired"
    replay = ("replay", job, "--from", "2", "--edit", cli.path / "edit.py")
    killed = cli.start(*replay, HOLDFAST_FAILPOINT=point, HOLDFAST_FAILPOINT_ONCE=str(once))
    assert cli.finished(killed).code == -signal.SIGKILL
    assert once.exists()
    if point == "reset.before":
        assert len(cli.archive(batch, "a").runs()) == 1
        assert cli(*replay).code == 0
    else:
        done = cli("run", file, "--json")
        assert (done.code, done.summary()["a"]["status"]) == (0, "succeeded")
    archive = cli.archive(batch, "a")
    old, new = archive.runs()
    assert archive.end(new).result == {"n": 40, "text": "data\n"}
    assert archive.end(old).result == {"n": 2, "text": "data\n"}
    assert [len(archive.attempts(new, turn)) for turn in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert cli("verify", job).code == 0
