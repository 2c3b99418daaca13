"""``holdfast run``: what it starts, what it prints, how it exits."""

import json
import re
import shutil
from pathlib import Path

import pytest

from runtime.client.wait_reasons import WAITS
from runtime.job.phases import Phase
from tests.cli.command_line import CommandLine, counting, script

pytestmark = pytest.mark.server

TOOLS = '''
import os

def loud(text: str) -> str:
    """Prints in every way there is."""
    print("printed", text)
    os.write(1, b"written\\n")
    os.system("echo of a child")
    return text

def broken() -> None:
    """Raises."""
    raise ValueError("it broke")
'''


def test_json_lines_and_nothing_else_on_stdout(cli: CommandLine) -> None:
    """Each line of --json is an object, the last one the summary; what tools print is on stderr;
    exit 1 if some failed.
    """
    cli.write("loudtools.py", TOOLS)
    cli.write("loud.yaml", script("loud('x')", "broken()", "finish({'files': []})"))
    cli.write("imports.py", "import nosuch_module as respond\n")
    cli.write("raises.py", "def respond(messages):\n    raise KeyError('no')\n")
    cli.write("nothing.py", "respond = 1\n")
    file = cli.jobs(
        "id: loud, model: scripted/loud.yaml, tools: ['loudtools:loud', 'loudtools:broken']",
        "id: imports, model: scripted/imports.py",
        "id: raises, model: scripted/raises.py",
        "id: nothing, model: scripted/nothing.py",
        batch="json",
    )
    done = cli.finished(cli.start("run", file, "--json"))
    assert done.code == 1
    events = [json.loads(line) for line in done.out.splitlines()]
    assert (events[0]["event"], events[-1]["event"], events[-1]["interrupted"]) == (
        "plan",
        "summary",
        False,
    )
    assert sorted(done.err.splitlines()) == ["of a child", "printed x", "written"]
    jobs = done.summary()
    assert list(jobs) == ["loud", "imports", "raises", "nothing"]
    loud = jobs["loud"]
    assert loud.pop("tokens") > 0
    assert loud == {
        "job": "json/loud",
        "id": "loud",
        "status": "succeeded",
        "reason": "finished",
        "result": {"files": []},
        "turns": 3,
        "cost_usd": 0.0,
        "sub_jobs": None,
        "workspace": None,
        "patch": None,
    }
    assert {jobs[name]["status"] for name in jobs if name != "loud"} == {"failed"}
    assert "ModuleNotFoundError: No module named 'nosuch_module'" in jobs["imports"]["reason"]
    assert "respond raised KeyError: 'no'" in jobs["raises"]["reason"]
    assert "it has no function respond(messages)" in jobs["nothing"]["reason"]
    outcomes = [turn["outcome"] for turn in cli("log", "json/loud", "--json").json()["turns"]]
    assert outcomes == ["ok", "error ValueError", "ok"]


@pytest.mark.smoke
def test_the_same_command_repeats_nothing(cli: CommandLine) -> None:
    """Again, nothing runs; a job added runs alone; one removed is left; another concurrency is no
    change.
    """
    cli.write("two.py", counting(1, 0))
    job = "model: scripted/two.py"
    file = cli.jobs(f"id: a, {job}", f"id: b, {job}", batch="again")
    first = cli("run", file)
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("batch again: 2 new (embedded server 127.0.0.1:")
    assert first.out.splitlines()[-1].startswith("2 succeeded; ")
    assert cli("run", file).out.startswith("batch again: 2 done (")
    cli.jobs(f"id: b, {job}", f"id: c, {job}", batch="again", head="concurrency: 1")
    third = cli("run", file, "--json")
    assert json.loads(third.out.splitlines()[0])["jobs"] == [
        {"id": "b", "start": "done", "turn": 2},
        {"id": "c", "start": "new", "turn": 0},
    ]
    assert {name: job["result"] for name, job in third.summary().items()} == {"b": 1, "c": 1}
    assert [len(cli.archive("again", name).runs()) for name in "abc"] == [1, 1, 1]


def test_a_changed_definition_starts_nothing(cli: CommandLine) -> None:
    """The error says what changed; exit 2; jobs that are new are not started either."""
    cli.write("two.py", counting(1, 0))
    file = cli.jobs("id: a, model: scripted/two.py", batch="changed")
    assert cli("run", file).code == 0
    cli.jobs(
        "id: a, model: scripted/two.py, budget: {turns: 7}",
        "id: b, model: scripted/two.py",
        batch="changed",
    )
    done = cli("run", file)
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "error: job 'a' was started with another definition: budget.turns: 30 -> 7. Nothing was"
        " started: put the definition back, or give the job another id or the file another"
        " batch\n"
    )
    assert cli.archive("changed", "b").definition() is None


def test_rerun_failed(cli: CommandLine) -> None:
    """Only jobs that ended without success start anew, defined as they are now; their old ends are
    not reported.
    """
    cli.write("good.yaml", script("finish(1)"))
    cli.write("bad.yaml", script("x = 1"))
    jobs = ["id: good, model: scripted/good.yaml", "id: bad, model: scripted/bad.yaml"]
    file = cli.jobs(*jobs, "id: poor, model: scripted/bad.yaml, budget: {turns: 1}", batch="rerun")
    first = cli("run", file)
    assert first.code == 1
    assert cli("run", file).out.startswith("batch rerun: 1 done, 2 ended without success (")
    cli.jobs(*jobs, "id: poor, model: scripted/good.yaml, budget: {turns: 2}", batch="rerun")
    refused = cli("run", file)
    assert (refused.code, "start it anew with --rerun-failed" in refused.err) == (2, True)
    again = cli("run", file, "--rerun-failed")
    assert again.code == 1
    assert again.out.startswith("batch rerun: 1 done, 2 started anew (")
    cli.write("bad.yaml", script("x = 1", "finish(2)"))
    last = cli("run", file, "--rerun-failed", "--json")
    assert (last.code, {name: job["result"] for name, job in last.summary().items()}) == (
        0,
        {"good": 1, "bad": 2, "poor": 1},
    )
    assert [len(cli.archive("rerun", name).runs()) for name in ("good", "bad", "poor")] == [1, 3, 2]


def test_a_budget_exits_3(cli: CommandLine) -> None:
    """Exit 3 if a budget stopped some and the others succeeded; a server that does not answer uses
    up the wall budget, or leaves too little of it for another attempt.
    """
    cli.write("good.yaml", script("finish(1)"))
    cli.write("endless.py", counting(99, 0))
    nobody = (
        "model: {name: openai/gpt-5, api_base: 'http://127.0.0.1:9/v1', api_key: k}, budget:"
        " {wall: 2s}"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        file = cli.jobs(
            "id: good, model: scripted/good.yaml",
            "id: turns, model: scripted/endless.py, budget: {turns: 2}",
            f"id: nobody, {nobody.replace(', api_key: k', '')}",
            batch="budget",
        )
        done = cli("run", file)
    assert done.code == 3
    assert "budget/turns  budget after 2 turns" in done.out
    assert re.search(r"the wall budget of 2 s (is spent|has \ds left, too little for)", done.out)
    assert done.out.splitlines()[-4].startswith("1 succeeded, 2 budget; ")
    assert (
        done.out.splitlines()[-3]
        == f"2 ended without success; to start them anew: holdfast run {file} --rerun-failed"
    )
    assert done.out.splitlines()[-2].startswith("  budget/turns  budget: ")


def test_dry_run_and_print_config(cli: CommandLine) -> None:
    """Both show what would be done, and start nothing."""
    cli.write("good.yaml", script("finish(1)"))
    file = cli.jobs(
        "id: a, model: scripted/good.yaml", "id: b, model: scripted/good.yaml", batch="dry"
    )
    dry = cli("run", file, "--dry-run")
    assert (dry.code, dry.out) == (
        0,
        "batch dry: 2 new (dry run: nothing is started)\ndry/a  new\ndry/b  new\n",
    )
    config = cli("run", file, "--print-config")
    assert config.code == 0
    assert f"scripted/{cli.path}/good.yaml" in config.out
    assert not any(line.startswith("dry/") for line in cli("ls").out.splitlines())


def test_a_dry_run_starts_no_server(own_cli: CommandLine) -> None:
    """Where none runs the archive says what would be done: the same as the server would."""
    own_cli.write("good.yaml", script("finish(1)"))
    own_cli.write("bad.yaml", script("finish("))
    jobs = ("id: a, model: scripted/good.yaml", "id: b, model: scripted/bad.yaml")
    file = own_cli.jobs(*jobs, batch="dry")
    dry = own_cli("run", file, "--dry-run")
    assert (dry.code, dry.out) == (
        0,
        "batch dry: 2 new (dry run: nothing is started)\ndry/a  new\ndry/b  new\n",
    )
    assert not (own_cli.home / "server" / "server.log").exists()
    assert own_cli("run", file).code == 1
    # What is begun anew may be defined otherwise.
    own_cli.jobs(jobs[0], "id: b, model: scripted/good.yaml", batch="dry")
    told = []
    for command in ("down", "up"):
        assert own_cli(command).code == 0
        told.append(own_cli("run", file, "--dry-run", "--rerun-failed"))
    assert told[0] == told[1]
    assert told[0].out.splitlines() == [
        "batch dry: 1 done, 1 started anew (dry run: nothing is started)",
        "dry/a  done, succeeded, turn 1",
        "dry/b  rerun",
    ]


def test_bad_input_exits_2(cli: CommandLine) -> None:
    """A mistake in the jobs file is one line with file, line and key."""
    file = cli.jobs("id: a, model: scripted/none.yaml, tuns: 3", batch="bad")
    done = cli("run", file)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {file}:4: jobs[0].tuns: unknown key")
    assert cli("run", cli.path / "nowhere.yaml").code == 2


def test_another_archive_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    """A batch has one archive: the same file with another --store is an error that names both, and
    one in whose place another was made is told as gone.
    """
    cli.write("good.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/good.yaml", batch="stores")
    assert cli("run", file, "--store", tmp_path / "one").code == 0
    assert cli("log", "a", "--store", tmp_path / "one").out.endswith("end: succeeded\n")
    other = cli("run", file, "--store", tmp_path / "two")
    assert other.code == 2
    assert (
        f"has its archive in {tmp_path / 'one'}, and this command would use {tmp_path / 'two'}"
        in other.err
    )
    shutil.rmtree(tmp_path / "one")
    gone = cli("run", file, "--store", tmp_path / "one")
    assert gone.code == 2
    assert f"had its archive in {tmp_path / 'one'}, and what is there now is another" in gone.err


def test_a_sleeping_job_is_told_of_once(cli: CommandLine) -> None:
    """A line says that it sleeps; another comes when a change has woken it."""
    sleeps = WAITS[Phase.ASLEEP]
    log = cli.write("ws/log.txt", "start\n")
    cli.write(
        "sleeps.yaml",
        script("log = view('log.txt', freq='Sync')\nwait_for(log, timeout=60)", "finish(log.text)"),
    )
    process = cli.start("run", cli.jobs("id: sleeper, model: scripted/sleeps.yaml", batch="sleeps"))
    assert process.stdout is not None
    lines = []
    while not lines or not lines[-1].endswith(f"  {sleeps}\n"):
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    log.write_text("stop\n")
    done = cli.finished(process)
    assert (done.code, (lines[-1] + done.out).count(sleeps)) == (0, 1)
    assert "sleeps/sleeper  succeeded after 2 turns" in done.out
