"""Temporal's database is lost: ``run`` says so, runs nothing again that ended, and goes on out of
the archive if told to.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.archive.approvals import waiting_question
from tests.cli.command_line import UNHURRIED, CommandLine, damage, script, wait_for
from tests.cli.test_cli_approvals import asked, begin, ran

pytestmark = [pytest.mark.server, pytest.mark.kill]

MODEL = """
from pathlib import Path

LOG = Path(__file__).with_suffix(".log")
TURNS = {turns}

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    with LOG.open("a") as log:
        log.write(f"{{n + 1}}\\n")
    return {{"code": "x = 1" if n == 0 else "x += 1" if n < TURNS - 1 else "finish(x)", "delay": {delay} if n > 2 else 0}}
"""


def lose_the_database(cli: CommandLine) -> None:
    """The embedded server's files go, and the archive stays."""
    assert cli("down").code == 0
    for path in cli.home.iterdir():
        if path.name != "archive" and path.is_file():
            path.unlink()
        elif path.name != "archive":
            shutil.rmtree(path)


def _interrupted(cli: CommandLine) -> Path:
    """A batch of one job that ended and one that was killed in the middle, whose server's database
    is lost then.
    """
    cli.write("short.py", MODEL.format(turns=2, delay=0))
    cli.write("long.py", MODEL.format(turns=8, delay=600))
    long = f"id: long, model: scripted/long.py, {UNHURRIED}"
    file = cli.jobs("id: short, model: scripted/short.py", long, batch="b")
    process = cli.start("run", file, "--json")
    wait_for(
        lambda: cli.turns("b", "long") == 3 and (cli.path / "long.log").read_text().count("4") == 1,
        "turn 4",
        process,
    )
    wait_for(
        lambda: (a := cli.archive("b", "short")).runs() != [] and a.end(a.runs()[-1]) is not None,
        "end",
        process,
    )
    process.kill()
    cli.finished(process)
    lose_the_database(cli)
    cli.write("long.py", MODEL.format(turns=8, delay=0))
    return file


def _calls(cli: CommandLine, name: str) -> list[int]:
    return [int(line) for line in (cli.path / f"{name}.log").read_text().split()]


def test_it_is_said_and_nothing_is_started(own_cli: CommandLine) -> None:
    """Exit code 2, with what stands there and what to do; what ended is known to have ended, also
    to --dry-run, which asks the server if one runs.
    """
    file = _interrupted(own_cli)
    asked = own_cli("run", file, "--dry-run")
    assert (asked.code, asked.out.splitlines()) == (
        0,
        [
            "batch b: 1 done, 1 open (dry run: nothing is started)",
            "b/short  done, succeeded, turn 2",
            "b/long  open, turn 3",
        ],
    )
    assert "no server runs, and so none was asked" in asked.err
    assert not (own_cli.home / "server" / "server.log").exists()
    assert own_cli("up").code == 0
    unknown = "Temporal does not know of it: its database was lost, or it is another server"
    assert own_cli("ls", "b").out.count(unknown) == 1
    assert f"now: open: {unknown}" in own_cli("log", "b/long").out
    rows = {row["id"]: row for row in own_cli("results", "b", "--json").json()}
    assert (rows["long"]["status"], rows["short"]["status"]) == ("open", "succeeded")
    assert rows["long"]["reason"].startswith(unknown)
    watched = own_cli("watch", "b")
    assert watched.out.startswith("as it was left: b  1 open, 1 succeeded of 2; ")
    assert "'holdfast run' of its file says how to go on" in watched.err
    for options in ((), ("--dry-run",)):
        done = own_cli("run", file, *options)
        assert done.code == 2
        told = done.err.splitlines()
        assert told[0].startswith(
            "error: 1 job of batch b began and did not end, says the archive, and Temporal at"
            " 127.0.0.1:"
        )
        assert told[1:] == [
            "  b/long stood before statement 4: holdfast fork b/long@4 --as long-2",
            (
                "To go on with all of them under their own names, after what is archived: holdfast"
                f" run {file} --from-archive"
            ),
            (
                "To run them from their first turn again, and pay for it again: holdfast run"
                f" {file} --anew"
            ),
        ]
    assert (_calls(own_cli, "short"), _calls(own_cli, "long")) == ([1, 2], [1, 2, 3, 4])


@pytest.mark.slow
def test_a_database_that_is_lost_while_a_command_watches_is_told(own_cli: CommandLine) -> None:
    """In one line, and not as somebody's doing; the same command again says what can be done."""
    own_cli.write("long.py", MODEL.format(turns=8, delay=600))
    file = own_cli.jobs("id: long, model: scripted/long.py", batch="b")
    process = own_cli.start("run", file)
    wait_for(lambda: own_cli.turns("b", "long") == 3, "turn 3", process)
    server = own_cli.home / "server"
    for path in server.glob("temporal.db*"):
        path.unlink()
    os.kill(json.loads((server / "server.json").read_text())["pid"], signal.SIGKILL)
    done = own_cli.finished(process)
    told = [line for line in done.err.splitlines() if not line.startswith("the Temporal server")]
    assert (done.code, told) == (
        1,
        [
            "warning: the embedded Temporal server died and is started again",
            (
                "error: job b/long is lost: Temporal's database was, or job and batch were deleted"
                " there. Give the same command again"
            ),
        ],
    )
    again = own_cli("run", file)
    assert (again.code, f"{file} --from-archive" in again.err) == (2, True)


def test_a_lost_job_goes_on_from_the_archive(own_cli: CommandLine) -> None:
    """No finished turn is called again, the result is that of an undisturbed job, and the command
    again finds all done.
    """
    file = _interrupted(own_cli)
    done = own_cli("run", file, "--from-archive", "--json")
    assert done.code == 0, done.err
    plan = {job["id"]: job for job in json.loads(done.out.splitlines()[0])["jobs"]}
    assert (plan["long"]["start"], plan["long"]["turn"]) == ("resumed", 3)
    jobs = done.summary()
    assert (jobs["short"]["result"], jobs["long"]["result"], jobs["long"]["turns"]) == (1, 7, 8)
    assert _calls(own_cli, "short") == [1, 2]
    assert _calls(own_cli, "long") == [1, 2, 3, 4, 4, 5, 6, 7, 8]
    assert [step.turn for step in own_cli.archive("b", "long").steps()] == list(range(1, 9))
    assert own_cli("verify", "--all").code == 0
    again = own_cli("run", file, "--json")
    assert (
        again.code,
        {job["start"] for job in json.loads(again.out.splitlines()[0])["jobs"]},
    ) == (0, {"done"})


FAMILY = """
from pathlib import Path

GATE = Path(__file__).with_name("gate")
CODES = ["a = spawn('Short.')\\nb = spawn('Long.')", "wait_for(b)", "finish([a.text, b.text])"]

def respond(messages):
    goal, n = str(messages[1]["content"]), sum(m["role"] == "assistant" for m in messages)
    if "Short." in goal:
        return {"code": "x = 1" if n == 0 else "finish('short')"}
    if "Long." in goal:
        delay = 0 if n == 0 or GATE.exists() else 600
        return {"code": "x = 1" if n == 0 else "finish('long')", "delay": delay}
    return {"code": CODES[n]}
"""


def _family(cli: CommandLine) -> tuple[Path, Callable[[], list[tuple[str, int]]]]:
    """A job that waits for one of its two sub-jobs, when the database is lost; and how those stand:
    their statuses and turns.
    """
    cli.write("family.py", FAMILY)
    parent = f"id: parent, model: scripted/family.py, spawn: {{max: 2}}, {UNHURRIED}"
    file = cli.jobs(parent, batch="b")
    process = cli.start("run", file)

    def stand() -> list[tuple[str, int]]:
        rows = cli("ls", "b", "--json").json()
        return sorted((row["status"], row["turns"]) for row in rows if row["parent"])

    wait_for(
        lambda: (
            cli.turns("b", "parent") == 2
            and [turns for _, turns in stand()] == [1, 2]
            and ("succeeded", 2) in stand()
        ),
        "the sub-jobs' turns",
        process,
    )
    process.kill()
    cli.finished(process)
    lose_the_database(cli)
    cli.write("gate", "")
    return file, stand


def test_the_sub_jobs_of_a_lost_job_go_on_with_it(own_cli: CommandLine) -> None:
    """Those that were open go on under their own names, and it hears of the ends of all."""
    file, stand = _family(own_cli)
    done = own_cli("run", file, "--from-archive", "--json")
    assert done.code == 0, done.err
    short, long = done.summary()["parent"]["result"]
    assert ("short" in short, "long" in long) == (True, True)
    assert stand() == [("succeeded", 2), ("succeeded", 2)]
    assert own_cli("verify", "--all").code == 0


def test_a_sub_job_of_a_lost_job_is_not_deleted(own_cli: CommandLine) -> None:
    """The job, which goes on, hears of its end from the archive alone."""
    file, stand = _family(own_cli)
    rows = own_cli("ls", "b", "--json").json()
    (ended,) = [row["job"] for row in rows if row["status"] == "succeeded"]
    stays = f"{ended}: stays: it is a sub-job of b/parent, which has no end in the archive"
    pruned = own_cli("archive", "prune", "--status", "succeeded", "--yes")
    assert (pruned.code, stays in pruned.out) == (0, True), pruned.out + pruned.err
    refused = own_cli("archive", "delete", ended, "--reason", "room")
    assert (refused.code, "it is a sub-job of b/parent" in refused.err) == (2, True)
    done = own_cli("run", file, "--from-archive", "--json")
    assert done.code == 0, done.err
    assert stand() == [("succeeded", 2), ("succeeded", 2)]
    gone = own_cli("archive", "prune", "--status", "succeeded", "--yes")
    assert (gone.code, gone.out.count("objects deleted")) == (0, 3), gone.out + gone.err


def test_the_sub_jobs_of_a_lost_job_end_where_it_begins_anew(own_cli: CommandLine) -> None:
    """It starts its own; those that were open are cancelled, and what they spent counts."""
    file, stand = _family(own_cli)
    (before,) = [row for row in own_cli("ls", "b", "--json").json() if row["status"] == "open"][1:]
    done = own_cli("run", file, "--anew", "--json")
    assert done.code == 0, done.err
    assert stand() == [("cancelled", 1), *[("succeeded", 2)] * 3]
    rows = {row["job"]: row for row in own_cli("ls", "b", "--json").json()}
    left = rows[before["job"]]
    assert left["reason"] == "cancelled: it was lost with its parent, which began anew"
    assert (left["tokens"], left["cost_usd"]) == (before["tokens"], before["cost_usd"])
    assert own_cli("verify", "--all").code == 0


def test_a_lost_job_asks_a_person_again(own_cli: CommandLine) -> None:
    """The statement that waited for an approval waits again, and the call is made once."""
    jobs, running = begin(own_cli, "b", "got = 'before'", "got = pay('ann', amount=3)")
    asked(own_cli, "b", running)
    running.kill()
    own_cli.finished(running)
    lose_the_database(own_cli)
    for command in ("cancel", "approve"):
        refused = own_cli(command, "b/a")
        assert (refused.code, "archive has it open, and Temporal does" in refused.err) == (2, True)
    # As the worker finds it that dies before it has made anything of the new run.
    own_cli.start("run", jobs, "--from-archive", HOLDFAST_FAILPOINT="fork.after").wait()
    _refuses_early(own_cli)
    # And the one that dies when the new run has the question, and has not come to the call.
    running = own_cli.start("run", jobs, HOLDFAST_FAILPOINT="model.before_return")
    wait_for(lambda: _question_taken_over(own_cli), "the question of before", running)
    _refuses_early(own_cli)
    running.kill()
    own_cli.finished(running)
    running = own_cli.start("run", jobs, "--json")
    wait_for(lambda: own_cli("approve", "b/a").code == 0, "the question", running)
    done = own_cli.finished(running)
    assert (done.code, done.summary()["a"]["result"]) == (0, "ann 3"), done.err
    (plan,) = json.loads(done.out.splitlines()[0])["jobs"]
    assert plan == {"id": "a", "start": "resumed", "turn": 2}
    assert (ran(own_cli), done.summary()["a"]["turns"]) == (["ann 3"], 3)
    rows = own_cli("log", "b/a", "--json").json()["turns"]
    assert [(row["turn"], row["outcome"]) for row in rows] == [(1, "ok"), (2, "ok"), (3, "ok")]
    assert own_cli("verify", "--all").code == 0


def _refuses_early(cli: CommandLine) -> None:
    early = cli("approve", "b/a")
    assert (early.code, "took its place has not asked again yet" in early.err) == (2, True)


def _question_taken_over(cli: CommandLine) -> bool:
    waiting = waiting_question(cli.archive("b", "a"))
    return waiting is not None and waiting.run != waiting.asker


@pytest.mark.parametrize("way", ["--from-archive", "--anew"])
def test_a_lost_job_without_a_call_begins(own_cli: CommandLine, way: str) -> None:
    """It had begun, and its order was carried out by the run that is lost."""
    own_cli.write("short.py", MODEL.format(turns=2, delay=0))
    file = own_cli.jobs("id: short, model: scripted/short.py", batch="b")
    own_cli.start("run", file, HOLDFAST_FAILPOINT="begin.after").wait()
    assert not own_cli.archive("b", "short").runs()
    lose_the_database(own_cli)
    refused = own_cli("run", file)
    assert (refused.code, "  b/short had begun, and made no call" in refused.err) == (2, True)
    done = own_cli("run", file, way, "--json")
    assert done.code == 0, done.err
    assert done.summary()["short"]["result"] == 1
    assert own_cli("verify", "--all").code == 0


def test_anew_runs_only_what_was_open(own_cli: CommandLine) -> None:
    """--anew begins with the first turn; a job that ended is still done."""
    file = _interrupted(own_cli)
    done = own_cli("run", file, "--anew", "--json")
    assert (done.code, done.summary()["long"]["result"]) == (0, 7)
    assert _calls(own_cli, "short") == [1, 2]
    assert _calls(own_cli, "long") == [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8]


def test_what_failed_may_be_defined_otherwise_anew(own_cli: CommandLine) -> None:
    """--rerun-failed takes the new definition also where only the archive knows of the job."""
    own_cli.write("bad.yaml", script("finish("))
    own_cli.write("good.yaml", script("finish(1)"))
    file = own_cli.jobs("id: a, model: scripted/bad.yaml", batch="b")
    assert own_cli("run", file).code == 1
    lose_the_database(own_cli)
    own_cli.jobs("id: a, model: scripted/good.yaml", batch="b")
    assert own_cli("run", file).code == 2
    done = own_cli("run", file, "--rerun-failed", "--json")
    assert (done.code, done.summary()["a"]["result"]) == (0, 1), done.err
    assert own_cli("verify", "--all").code == 0


def test_a_job_that_was_lost_as_it_began_anew_begins_anew(own_cli: CommandLine) -> None:
    """The run that was lost had the order to begin after the end that the archive has."""
    own_cli.write("bad.py", 'def respond(messages):\n    return {"fail": {"status": 400}}\n')
    file = own_cli.jobs("id: bad, model: scripted/bad.py", batch="b")
    assert own_cli("run", file).code == 1
    own_cli.start("run", file, "--rerun-failed", HOLDFAST_FAILPOINT="begin.after").wait()
    lose_the_database(own_cli)
    own_cli.write("bad.py", MODEL.format(turns=2, delay=0))
    done = own_cli("run", file, "--rerun-failed", "--json")
    assert (done.code, done.summary()["bad"]["result"]) == (0, 1), done.err


def test_the_fork_that_it_names_works(own_cli: CommandLine) -> None:
    """The command of the error starts another job from there."""
    _interrupted(own_cli)
    done = own_cli("fork", "b/long@4", "--as", "long-2")
    assert done.code == 0, done.err
    assert _calls(own_cli, "long") == [1, 2, 3, 4, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("harm", ["damaged", "missing"])
def test_a_job_that_ended_is_not_open_by_an_older_run(own_cli: CommandLine, harm: str) -> None:
    """The start of its newest run cannot be read: the command names it, and begins nothing."""
    own_cli.write("short.py", MODEL.format(turns=2, delay=0).replace("finish(x)", "1 +"))
    file = own_cli.jobs("id: short, model: scripted/short.py, budget: {turns: 2}", batch="b")
    assert own_cli("run", file).code == 3
    own_cli.write("short.py", MODEL.format(turns=2, delay=0))
    assert own_cli("run", file, "--rerun-failed").code == 0
    newest = own_cli.archive("b", "short").runs()[-1]
    lose_the_database(own_cli)
    start = own_cli.home / "archive" / "b" / "short" / "runs" / newest
    if harm == "missing":
        start.unlink()
    else:
        damage(start)
    for options in ((), ("--from-archive",), ("--anew",), ("--rerun-failed",)):
        done = own_cli("run", file, *options)
        assert (done.code, f"b/short/runs/{newest}" in done.err) == (4, True)
        assert "holdfast verify b/short" in done.err and len(done.err.splitlines()) == 1
    assert _calls(own_cli, "short") == [1, 2, 1, 2]


@pytest.mark.slow
def test_a_job_whose_last_prompt_is_damaged_is_refused(own_cli: CommandLine) -> None:
    """Nothing is started, and nothing asked for ever: the command names the object, and the fork
    before it that works.
    """
    file = _interrupted(own_cli)
    run = own_cli.archive("b", "long").runs()[-1]
    harmed = f"b/long/turns/{run}/00000/0000003.attempt-001"
    damage(own_cli.home / "archive" / harmed)
    done = own_cli("run", file, "--from-archive")
    assert done.code == 4
    assert done.err.startswith(f"error: {harmed}: ")
    assert "b/long cannot go on after turn 3 without it. Nothing was started: 'holdfast fork" in (
        done.err
    )
    assert _calls(own_cli, "long") == [1, 2, 3, 4]
    again = own_cli("fork", "b/long@4", "--as", "long-2")
    assert (again.code, harmed in again.err) == (4, True)
    assert "'holdfast fork b/long@3 --as long-2'" in done.err
    assert own_cli("fork", "b/long@3", "--as", "long-2").code == 0
    assert _calls(own_cli, "long") == [1, 2, 3, 4, 3, 4, 5, 6, 7, 8]
