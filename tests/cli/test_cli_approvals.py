"""Calls that wait for a person: the job is suspended in mid-statement, and any process may end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from runtime.archive.approvals import DECISIONS, QUESTIONS
from runtime.archive.verify import damage, verify_job
from runtime.base.values import JobKey
from runtime.base.workflow_ids import approval_activity_id, job_workflow_id
from runtime.cli.caller import caller
from tests.cli.command_line import ROOT, CommandLine, script, wait_for
from tests.cli.json_shapes import misfits
from tests.cli.test_cli_retry import connected
from tests.reset_by_hand import reset_by_hand

TOOLS = """
from pathlib import Path
from holdfast import tool
here = Path(__file__).parent

def ran(what: str) -> str:
    with (here / "ran").open("a") as file:
        file.write(what + "\\n")
    return what

@tool(approval="always", effect="once")
def pay(to: str, *, amount: int = 1) -> str:
    return ran(f"{to} {amount}")

@tool(approval="once-per-args")
def look(at: str) -> str:
    return ran(at)
"""

SHAPES = json.loads((ROOT / "docs" / "json-shapes.json").read_text())["documents"]

_TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED

ASKS = (
    "try:\n    got = pay('ann', amount=3)\nexcept PermissionError as error:\n    got = str(error)"
)


def begin(cli: CommandLine, batch: str, *statements: str, settings: str = "") -> Any:
    """A run of one job, in a process of its own, and its jobs file."""
    cli.write("mine.py", TOOLS)
    cli.write("a.json", script(*statements, "finish(got)"))
    tools = "tools: ['mine:pay', 'mine:look']"
    jobs = cli.jobs(f"id: a, model: scripted/a.json, {tools}, {settings}", batch=batch)
    return jobs, cli.start("run", jobs, "--json")


def asked(cli: CommandLine, batch: str, running: Any) -> dict[str, Any]:
    """The question of the job, once it has asked one."""
    found: list[dict[str, Any]] = []

    def waits() -> bool:
        rows = cli("approvals", "--json").json()
        assert list(misfits(SHAPES["approvals"], rows)) == []
        found[:] = [row for row in rows if row["job"] == f"{batch}/a"]
        return bool(found)

    wait_for(lambda: waits() or running.poll() is not None, "the job asks")
    assert found, running.communicate()
    return found[0]


def left_asking(cli: CommandLine, batch: str) -> tuple[Any, dict[str, Any]]:
    """The jobs file of a job whose processes were killed while it asked, and its question."""
    jobs, running = begin(cli, batch, ASKS)
    row = asked(cli, batch, running)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    return jobs, row


def ran(cli: CommandLine) -> list[str]:
    """What tools did, in order."""
    path = cli.path / "ran"
    return path.read_text().splitlines() if path.exists() else []


def test_approved_by_a_person_after_a_kill(cli: CommandLine) -> None:
    """The question outlives its worker; the call is made once it is approved, with the arguments
    that the person gave; who, when and what is archived, and a frozen replay asks nobody.
    """
    jobs, row = left_asking(cli, "approve")
    assert (row["tool"], row["args"], row["kwargs"]) == ("pay", ["ann"], {"amount": 3})
    running = cli.start("run", jobs, "--json")
    assert asked(cli, "approve", running) == row
    assert ran(cli) == []
    editor = cli.write(
        "editor.py",
        "import sys, pathlib\np = pathlib.Path(sys.argv[-1])\n"
        "p.write_text(p.read_text().replace('3', '2'))\n",
    )
    os.environ["EDITOR"] = f"{sys.executable} {editor}"
    try:
        done = cli("approve", "approve/a", "--edit", "--json")
    finally:
        del os.environ["EDITOR"]
    assert list(misfits(SHAPES["approve"], done.json())) == []
    assert done.json() == {
        "job": "approve/a", "approved": True, "turn": 1, "call": 0, "tool": "pay", "edited": True
    }  # fmt: skip
    assert cli.finished(running).summary()["a"]["result"] == "ann 2"
    assert ran(cli) == ["ann 2"]
    archive = cli.archive("approve", "a")
    run = archive.runs()[-1]
    decision = (archive.effect(run, 1, DECISIONS) or {})["decision"]
    assert decision["by"]
    assert decision["at"] > 0
    assert decision["arguments"] == {"args": ["ann"], "kwargs": {"amount": 2}}
    assert (archive.effect(run, 1, QUESTIONS) or {})["question"]["tool"] == "pay"
    told = f"  1.0  pay  approved by {caller()}, with other arguments"
    assert told in cli("log", "approve/a", "--effects").out
    assert told.strip() in cli("show", "approve/a@1", "--part", "statement").out
    frozen = cli("replay", "approve/a", "--from", "1", "--mode", "reexecute", "--frozen")
    assert frozen.code == 0, frozen.err
    assert ran(cli) == ["ann 2"]
    assert damage(verify_job(archive)) == []


def test_taken_back_to_behind_the_answer(cli: CommandLine) -> None:
    """A job that was answered can be taken back to any later statement: the answer is in the
    history, and nobody is asked again; taken back to before it, it asks anew.
    """
    _, running = begin(cli, "behind", ASKS, "n = 1", "n += 1")
    first = asked(cli, "behind", running)
    assert cli("approve", "behind/a").code == 0
    assert cli.finished(running).summary()["a"]["result"] == "ann 3"
    done = cli("replay", "behind/a", "--from", "3")
    assert done.code == 0, done.err
    archive = cli.archive("behind", "a")
    assert len(archive.runs()) == 2
    assert archive.end(archive.runs()[-1]).result == "ann 3"
    assert ran(cli) == ["ann 3"]
    back = cli.start("replay", "behind/a", "--from", "1")
    again = asked(cli, "behind", back)
    assert again != first
    assert cli("reject", "behind/a", "--reason", "once is enough").code == 0
    assert cli.finished(back).code == 0
    archive = cli.archive("behind", "a")
    assert "once is enough" in archive.end(archive.runs()[-1]).result
    assert ran(cli) == ["ann 3"]


def test_taken_back_by_hand_to_behind_the_question(cli: CommandLine) -> None:
    """Temporal's own reset leaves the question with the run that asked it; its answer is heard."""
    jobs, running = begin(cli, "by-hand", ASKS)
    asked(cli, "by-hand", running)
    job = job_workflow_id(JobKey(batch="by-hand", job="a"))
    # The archive has the question before the history has that it was asked.
    wait_for(lambda: asyncio.run(_has_heard_of_the_question(job)), "the job waits", running)
    running.kill()
    cli.finished(running)
    asyncio.run(_reset_to_the_end(job))
    assert cli("approve", "by-hand/a").code == 0
    done = cli("run", jobs, "--json")
    assert (done.code, done.summary()["a"]["result"], ran(cli)) == (0, "ann 3", ["ann 3"])


async def _events(workflow_id: str) -> list[HistoryEvent]:
    handle = (await connected()).get_workflow_handle(workflow_id)
    return [event async for event in handle.fetch_history_events()]


async def _has_heard_of_the_question(workflow_id: str) -> bool:
    """Whether the job's first question was asked, and a task that came behind that has ended."""
    events = await _events(workflow_id)
    question = [
        event.event_id
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_id == approval_activity_id(1, 0)
    ]
    heard = [
        event.event_id
        for event in events
        if event.activity_task_completed_event_attributes.scheduled_event_id in question
    ]
    return any(
        heard and event.event_id > heard[0] and event.event_type == _TASK_COMPLETED
        for event in events
    )


async def _reset_to_the_end(workflow_id: str) -> None:
    """Reset a job to where it is."""
    tasks = [
        event.event_id
        for event in await _events(workflow_id)
        if event.event_type == _TASK_COMPLETED
    ]
    await reset_by_hand(await connected(), workflow_id, tasks[-1])


def test_rejected_with_a_reason(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement gets an exception that says who and why, and the tool does not run. An editor
    that fails decides nothing.
    """
    _, running = begin(cli, "reject", ASKS)
    asked(cli, "reject", running)
    monkeypatch.setenv("EDITOR", "false")
    failed = cli("approve", "reject/a", "--edit")
    assert (failed.code, failed.err) == (
        2,
        "error: nothing is decided: the editor: false: Editing failed\n",
    )
    for named in ("2", "1.1"):
        other = cli("approve", f"reject/a@{named}")
        said = f"waits with call 1.0, and not with one of {named} ("
        assert (other.code, said in other.err) == (2, True)
    told = cli("reject", "reject/a@1", "--reason", "too much")
    assert (told.code, told.out) == (0, "reject/a@1.0: pay is rejected\n")
    result = cli.finished(running).summary()["a"]["result"]
    assert result.startswith("pay() was rejected by ")
    assert result.endswith(": too much")
    assert ran(cli) == []
    nothing = cli("approve", "reject/a")
    assert (nothing.code, "waits for no approval" in nothing.err) == (2, True)


@pytest.mark.parametrize(
    ("otherwise", "result"),
    [
        ("reject", "pay() was rejected: nobody answered within 1s"),
        ("approve", "ann 3"),
    ],
)
def test_nobody_answers(cli: CommandLine, otherwise: str, result: str) -> None:
    """After its time a question is answered as the jobs file says."""
    settings = f"approvals: {{wait: 1s, otherwise: {otherwise}}}"
    _, running = begin(cli, f"nobody-{otherwise}", ASKS, settings=settings)
    assert cli.finished(running).summary()["a"]["result"] == result
    assert cli("approvals").out == "nothing waits for approval\n"


def test_equal_arguments_are_approved_once(cli: CommandLine) -> None:
    """Other arguments are another question; a jobs file may say that nobody is asked."""
    settings = "approvals: {tools: {pay: never}}"
    code = ("got = [look('a'), look('a'), pay('bob')]", "got += [look('a'), look('b')]")
    _, running = begin(cli, "equal", *code, settings=settings)
    for at in ("a", "b"):
        assert asked(cli, "equal", running)["args"] == [at]
        cli("approve", "equal/a")
        wait_for(lambda at=at: at in ran(cli), "the call is made")
    assert cli.finished(running).summary()["a"]["result"] == ["a", "a", "bob 1", "a", "b"]


def test_a_second_answer_is_for_no_other_call(cli: CommandLine) -> None:
    """Who names the call that was listed approves nothing else, whoever was faster."""
    code = "pay('ann')\ntry:\n    got = pay('bob')\nexcept PermissionError:\n    got = 'no'"
    _, running = begin(cli, "twice", code)
    listed = asked(cli, "twice", running)
    call = f"twice/a@{listed['turn']}.{listed['call']}"
    assert cli("approve", call).out == f"{call}: pay is approved\n"
    wait_for(lambda: asked(cli, "twice", running)["args"] == ["bob"], "the next call waits")
    again = cli("approve", call)
    assert (again.code, "waits with call 1.1, and not with one of 1.0 (" in again.err) == (2, True)
    assert cli("reject", "twice/a@1.1").code == 0
    assert cli.finished(running).summary()["a"]["result"] == "no"
    assert ran(cli) == ["ann 1"]


def test_the_first_answer_counts_where_no_worker_is(cli: CommandLine) -> None:
    """Who answers a call that somebody else has answered, or whose job was asked to end, is told
    so, also while no worker has heard of either.
    """
    jobs, _ = left_asking(cli, "first")
    assert cli("approve", "first/a@1.0").code == 0
    again = cli("reject", "first/a@1.0")
    assert (again.code, again.err) == (
        2,
        f"error: call 1.0 of job first/a was approved by {caller()} before\n",
    )
    assert cli("run", jobs, "--json").summary()["a"]["result"] == "ann 3"
    jobs, _ = left_asking(cli, "ending")
    assert cli("cancel", "ending/a").code == 0
    late = cli("approve", "ending/a")
    assert (late.code, late.err) == (
        2,
        "error: call 1.0 of job ending/a waits no more: the job was asked to end\n",
    )
    assert cli("run", jobs, "--json").summary()["a"]["status"] == "cancelled"
    assert ran(cli) == ["ann 3"]


def test_an_editor_that_is_open_while_others_answer(cli: CommandLine) -> None:
    """What was edited while somebody else answered decides nothing, and says so."""
    _, running = begin(cli, "slow", ASKS)
    asked(cli, "slow", running)
    meanwhile = cli.write(
        "editor.py",
        "import pathlib, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'holdfast', 'reject', 'slow/a'], check=True,"
        " stdout=subprocess.DEVNULL)\n"
        "path = pathlib.Path(sys.argv[-1])\n"
        "path.write_text(path.read_text().replace('3', '2'))\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDITOR", f"{sys.executable} {meanwhile}")
        patch.setenv("PYTHONPATH", str(ROOT))
        late = cli("approve", "slow/a@1.0", "--edit")
    assert (late.code, late.err) == (
        2,
        f"error: call 1.0 of job slow/a was rejected by {caller()} before\n",
    )
    assert "was rejected by" in cli.finished(running).summary()["a"]["result"]
    assert ran(cli) == []


def test_a_waiting_job_can_be_cancelled(cli: CommandLine) -> None:
    """It ends as cancelled, and asks nothing any more."""
    _, running = begin(cli, "cancelled", ASKS)
    asked(cli, "cancelled", running)
    assert cli("cancel", "cancelled/a").code == 0
    assert (
        json.loads(cli.finished(running).out.splitlines()[-1])["jobs"][0]["status"] == "cancelled"
    )
    assert ran(cli) == []
    assert cli("approvals", "--json").json() == []


def test_commands_by_patterns_and_what_is_masked(cli: CommandLine) -> None:
    """A command waits if its pattern says so, and others run; what the person could not read stays
    what the statement had, unless it was written anew, and a mask is no value.
    """
    cli.write(
        "a.json",
        script(
            "free = sh('echo free').stdout",
            "got = sh('printf %s%s $LEFT $SAID > left; cat left',"
            " env={'LEFT': 'ticket-' + '12345', 'SAID': 'no'})",
            "finish([free, got.exit_code, open('left').read().replace('12345', '54321')])",
        ),
    )
    jobs = cli.jobs(
        "id: a, model: scripted/a.json, workspace: {sandbox: none},"
        " approvals: {sh: {'cat left*': always}}, redact: {patterns: ['ticket-12345']}",
        batch="commands",
    )
    running = cli.start("run", jobs, "--json")
    row = asked(cli, "commands", running)
    assert (row["turn"], row["tool"]) == (2, "sh")
    env = row["kwargs"]["env"]
    assert env["LEFT"].startswith("[masked:pattern-1:")
    refused = edited(cli, "commands/a", "'no'", "env['LEFT'] + 'x'")
    assert (refused.code, "stands for a secret that is not shown" in refused.err) == (2, True)
    assert asked(cli, "commands", running) == row
    assert edited(cli, "commands/a", "'yes'").json()["edited"] is True
    result = cli.finished(running).summary()["a"]["result"]
    assert result == ["free\n", 0, env["LEFT"] + "yes"]
    archive = cli.archive("commands", "a")
    decision = (archive.effect(archive.runs()[-1], 2, DECISIONS) or {})["decision"]
    assert decision["kept"] == [["kwargs", "env", "LEFT"]]
    frozen = cli("replay", "commands/a", "--from", "1", "--mode", "reexecute", "--frozen")
    assert frozen.code == 0, frozen.err
    assert damage(verify_job(archive)) == []


def edited(cli: CommandLine, job: str, said: str, left: str = "env['LEFT']") -> Any:
    """``approve --edit`` with an editor that sets two variables of the command's environment."""
    editor = cli.write(
        "editor.py",
        "import json, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[-1])\n"
        "asked = json.loads(path.read_text())\n"
        "env = asked['kwargs']['env']\n"
        f"env.update(LEFT={left}, SAID={said})\n"
        "path.write_text(json.dumps(asked))\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDITOR", f"{sys.executable} {editor}")
        return cli("approve", job, "--edit", "--json")


def test_a_job_that_was_terminated_in_temporal_waits_for_nobody(cli: CommandLine) -> None:
    """The archive has nothing of its end: what waits is told by the server, where it is in reach;
    so is, in ``log``, how the job ended.
    """
    _, running = begin(cli, "gone", ASKS)
    asked(cli, "gone", running)

    async def terminate() -> None:
        job = (await connected()).get_workflow_handle("holdfast/gone/a")
        await job.terminate(reason="somebody said so")

    asyncio.run(terminate())
    cli.finished(running)
    assert cli("approvals", "--json").json() == []
    now = cli("log", "gone/a", "--json").json()["now"]
    assert now == {"status": "failed", "reason": "the workflow was terminated: somebody said so"}
    assert "now: failed: the workflow was terminated" in cli("log", "gone/a").out
