"""Temporal's database is lost while a job's statement is in the midst of an effect: the statement
goes on as after a worker that was killed there.
"""

from pathlib import Path
from typing import Any

import pytest

from runtime.archive import keys
from tests.cli.command_line import UNHURRIED, CommandLine, script, wait_for
from tests.cli.test_cli_approvals import asked, ran
from tests.cli.test_cli_lost import lose_the_database
from tests.gated_tools import TOOLS

pytestmark = [pytest.mark.server, pytest.mark.kill]

UNKNOWN = "try:\n    got += ' ' + {call}\nexcept OutcomeUnknown as error:\n    got += ' unknown'"


def _begin(cli: CommandLine, *statements: str, settings: str = "") -> tuple[Path, Any]:
    cli.write("mine.py", TOOLS)
    cli.write("a.json", script(*statements, "finish(got)"))
    tools = "tools: ['mine:pay', 'mine:ask', 'mine:look']"
    jobs = cli.jobs(f"id: a, model: scripted/a.json, {tools}{settings}", batch="b")
    return jobs, cli.start("run", jobs, "--json")


def _lost(cli: CommandLine, running: Any) -> None:
    running.kill()
    cli.finished(running)
    lose_the_database(cli)
    cli.write("gate", "")


def _came_to(cli: CommandLine, jobs: Path, turns: int) -> str:
    """The result of the job, gone on with; its record is whole, and is executed again as it is."""
    done = cli("run", jobs, "--from-archive", "--json")
    assert done.code == 0, done.err
    job = done.summary()["a"]
    rows = cli("log", "b/a", "--json").json()["turns"]
    assert [(row["turn"], row["outcome"]) for row in rows] == [
        (n, "ok") for n in range(1, turns + 1)
    ]
    assert job["turns"] == turns
    assert cli("verify", "--all").code == 0
    # The turn of the statement is the first that is the run's own.
    frozen = cli("replay", "b/a", "--from", str(turns - 1), "--mode", "reexecute", "--frozen")
    assert frozen.code == 0, frozen.out + frozen.err
    return str(job["result"])


@pytest.mark.parametrize(
    ("before", "call", "came_to", "calls"),
    [
        ((), "pay('ann')", "first unknown", ["first", "ann"]),
        (("x = 1",), "look('bob')", "first bob", ["first", "bob", "bob"]),
    ],
)
def test_a_call_under_way_is_as_its_tool_says(
    own_cli: CommandLine, before: tuple[str, ...], call: str, came_to: str, calls: list[str]
) -> None:
    """One that runs at most once has an unknown outcome, another is made again; what was done
    before it is not done again.
    """
    statement = "got = look('first')\n" + UNKNOWN.format(call=call)
    jobs, running = _begin(own_cli, *before, statement)
    wait_for(lambda: len(ran(own_cli)) == 2, "the call", running)
    _lost(own_cli, running)
    assert _came_to(own_cli, jobs, len(before) + 2) == came_to
    assert ran(own_cli) == calls


def test_a_question_after_a_call_is_asked_again(own_cli: CommandLine) -> None:
    """The call before it is not made again."""
    jobs, running = _begin(own_cli, "got = look('first')\n" + UNKNOWN.format(call="ask('ann')"))
    asked(own_cli, "b", running)
    _lost(own_cli, running)
    running = own_cli.start("run", jobs, "--from-archive", "--json")
    wait_for(lambda: own_cli("approve", "b/a").code == 0, "the question", running)
    done = own_cli.finished(running)
    assert (done.code, done.summary()["a"]["result"]) == (0, "first ann"), done.err
    assert ran(own_cli) == ["first", "ann"]
    assert own_cli("verify", "--all").code == 0


def test_a_call_that_was_approved_is_not_asked_about_again(own_cli: CommandLine) -> None:
    """It runs at most once and was under way: its outcome is unknown, whoever says yes again."""
    jobs, running = _begin(own_cli, "got = look('first')\n" + UNKNOWN.format(call="ask('ann')"))
    asked(own_cli, "b", running)
    assert own_cli("approve", "b/a").code == 0
    wait_for(lambda: len(ran(own_cli)) == 2, "the call", running)
    _lost(own_cli, running)
    assert _came_to(own_cli, jobs, 2) == "first unknown"
    assert ran(own_cli) == ["first", "ann"]


def test_a_command_under_way_runs_again(own_cli: CommandLine) -> None:
    """From the files of the version before it, with what was written before."""
    gate, log = own_cli.path / "gate", own_cli.path / "ran"
    wait = f"echo ran >> {log}; cat a; while ! test -e {gate}; do sleep 0.1; done"
    jobs, running = _begin(
        own_cli,
        f"write('a', 'text')\ngot = sh({wait!r}).stdout",
        settings=", workspace: {from: ./ws, write: true, sandbox: none}",
    )
    wait_for(lambda: ran(own_cli) == ["ran"], "the command", running)
    _lost(own_cli, running)
    assert _came_to(own_cli, jobs, 2) == "text"
    assert ran(own_cli) == ["ran", "ran"]


FAMILY = """
GATE = {gate!r}
PARENT = ["a = spawn('Below.')\\nlook('ann')", "wait_for(a)", "finish(a.text)"]

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    if "Below." not in str(messages[1]["content"]):
        return {{"code": PARENT[n]}}
    import os
    delay = 600 if n and not os.path.exists(GATE) else 0
    return {{"code": "x = 1" if n == 0 else "finish('below')", "delay": delay}}
"""


def test_a_sub_job_that_was_started_and_not_recorded_is_taken_over(own_cli: CommandLine) -> None:
    """The statement finds the one that it has started, and starts no other."""
    own_cli.write("mine.py", TOOLS)
    own_cli.write("family.py", FAMILY.format(gate=str(own_cli.path / "gate")))
    parent = "id: a, model: scripted/family.py, tools: ['mine:look'], spawn: {max: 2}"
    jobs = own_cli.jobs(f"{parent}, {UNHURRIED}", batch="b")
    running = own_cli.start("run", jobs, "--json")

    def below() -> list[tuple[str, str, int]]:
        rows = own_cli("ls", "b", "--json").json()
        return [(row["job"], row["status"], row["turns"]) for row in rows if row["parent"]]

    wait_for(
        lambda: ran(own_cli) == ["ann"] and [turns for *_, turns in below()] == [1],
        "the sub-job's turn",
        running,
    )
    [(name, *_)] = below()
    running.kill()
    own_cli.finished(running)
    # As where the worker is killed between the start and the record of it.
    run = own_cli.archive("b", "a").runs()[-1]
    (own_cli.home / "archive" / keys.effect_key("b/a", run, 1, 0)).unlink()
    lose_the_database(own_cli)
    own_cli.write("gate", "")
    done = own_cli("run", jobs, "--from-archive", "--json")
    assert done.code == 0, done.err
    assert "below" in done.summary()["a"]["result"]
    assert below() == [(name, "succeeded", 2)]
    assert own_cli("verify", "--all").code == 0
