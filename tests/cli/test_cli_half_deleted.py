"""A job whose deletion was killed in its midst: nothing goes on from what is left of it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine, counting
from tests.cli.test_cli_lost import lose_the_database

pytestmark = [pytest.mark.server, pytest.mark.kill]


def _half_deleted(cli: CommandLine) -> Path:
    """The file of a batch of two jobs that succeeded, of one of which the end is gone."""
    cli.write("two.py", counting(1, 0))
    file = cli.jobs("id: a, model: scripted/two.py", "id: b, model: scripted/two.py", batch="b")
    assert cli("run", file).code == 0
    assert cli("down").code == 0
    delete = ("archive", "delete", "b/a", "--reason", "room", "--by", "ann")
    killed = cli.start(*delete, HOLDFAST_FAILPOINT="archive.delete.mid_job")
    assert killed.wait() == -signal.SIGKILL
    archive = cli.archive("b", "a")
    assert (archive.newest_end(), len(archive.runs_that_called())) == (None, 1)
    return file


def _told(cli: CommandLine) -> str:
    """How the job stands by ``ls``; ``results`` and ``log`` say the same."""
    (row, _) = cli("ls", "b", "--json").json()
    (result, _) = cli("results", "b", "--json").json()
    assert (row["status"], result["status"], result["reason"]) == ("open", "open", row["reason"])
    return str(row["reason"])


def test_it_is_not_taken_for_a_lost_one(own_cli: CommandLine) -> None:
    """Nothing of it runs again, whatever is asked for: each command says what ends the deletion,
    and after that the job is new.
    """
    file = _half_deleted(own_cli)
    lose_the_database(own_cli)
    why = _told(own_cli)
    assert why.startswith("was deleted by ann at ")
    ends = "'holdfast archive delete b/a --reason TEXT' goes on"
    assert ": room; " in why and why.endswith(f" objects of it are left: {ends}")
    assert why in own_cli("verify", "b/a").out
    assert own_cli("up").code == 0
    assert _told(own_cli) == why
    assert f"now: open: {why}" in own_cli("log", "b/a").out
    refused = f"error: b/a {why}. Nothing was started\n"
    for options in ((), ("--dry-run",), ("--from-archive",), ("--anew",), ("--rerun-failed",)):
        done = own_cli("run", file, *options)
        assert (done.code, done.err) == (2, refused)
    assert own_cli("fork", "b/a@1", "--as", "c").err == refused
    assert own_cli("archive", "delete", "b/a", "--reason", "TEXT").code == 0
    again = own_cli("run", file, "--json")
    assert (again.code, again.summary()["a"]["result"]) == (0, 1), again.err
    assert own_cli("verify", "--all").code == 0


def test_it_is_not_taken_back(own_cli: CommandLine) -> None:
    """Temporal has it still: it is done there, and a replay would write beside what is to go."""
    file = _half_deleted(own_cli)
    refused = own_cli("replay", "b/a", "--from", "1")
    assert (refused.code, refused.err) == (2, f"error: b/a {_told(own_cli)}. Nothing was started\n")
    assert own_cli("run", file).code == 0
    assert own_cli("archive", "delete", "b/a", "--reason", "TEXT").code == 0


def test_a_hold_is_of_what_is_left_of_it(own_cli: CommandLine) -> None:
    """Which it says: the hold came too late for the rest."""
    _half_deleted(own_cli)
    held = own_cli("archive", "hold", "b/a", "--reason", "case 7", "--by", "legal")
    assert held.code == 0
    assert held.out.startswith("b/a: legal hold by legal since ")
    assert held.err.startswith("b/a was deleted by ann at ")
    assert held.err.endswith(": room: this is of what is left of it\n")
    refused = own_cli("archive", "delete", "b/a", "--reason", "room")
    assert (refused.code, "b/a: it is held: legal hold by legal" in refused.err) == (2, True)
