"""``holdfast retry``: jobs that ended without success begin anew, out of the archive alone."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from runtime.base.home import state_home
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client import orders
from runtime.server.embedded import NAMESPACE, ensure_server
from tests.cli.command_line import CommandLine, Done, counting, damage, script, wait_for
from tests.eventually import forgotten
from tests.workflow.stage import replayer

pytestmark = pytest.mark.server

ASKED = "the job begins anew as soon as a worker has it"


def worked_on(cli: CommandLine, *batches: str) -> None:
    """Have a worker work until the batches have ended."""
    for batch in batches:
        assert asyncio.run(is_open(batch))
    worker = cli.start("worker", "--processes", "1")
    for batch in batches:
        wait_for(lambda name=batch: not asyncio.run(is_open(name)), f"{batch} has ended", worker)
    worker.send_signal(signal.SIGTERM)
    cli.finished(worker)


async def connected() -> Client:
    server = await ensure_server(state_home())
    return await Client.connect(server.address, namespace=NAMESPACE)


async def is_open(batch: str) -> bool:
    client = await connected()
    described = await client.get_workflow_handle(batch_workflow_id(batch)).describe()
    return described.status is WorkflowExecutionStatus.RUNNING


async def replay(batch: str) -> None:
    """Replay both runs of the batch's workflow."""
    client = await connected()
    query = f"WorkflowId = '{batch_workflow_id(batch)}'"
    histories = [
        await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        async for run in client.list_workflows(query)
    ]
    assert len(histories) == 2
    for history in histories:
        await replayer(state_home()).replay_workflow(history)


async def forget(batch: str) -> None:
    await forgotten(await connected(), batch_workflow_id(batch))


def mixed(cli: CommandLine, batch: str) -> Path:
    """A batch whose jobs end in each way, and whose script is then mended."""
    cli.write("good.yaml", script("finish(1)"))
    cli.write(f"{batch}.yaml", script("x = 1"))
    file = cli.jobs(
        "id: good, model: scripted/good.yaml",
        f"id: bad, model: scripted/{batch}.yaml",
        f"id: poor, model: scripted/{batch}.yaml, budget: {{turns: 1}}",
        batch=batch,
        head="concurrency: 2",
    )
    assert cli("run", file).code == 1
    assert statuses(cli, batch) == {"good": "succeeded", "bad": "failed", "poor": "budget"}
    cli.write(f"{batch}.yaml", script("finish(2)"))
    return file


def statuses(cli: CommandLine, batch: str) -> dict[str, str]:
    return {row["id"]: row["status"] for row in cli("ls", batch, "--json").json()}


def runs(cli: CommandLine, batch: str) -> dict[str, int]:
    return {name: len(cli.archive(batch, name).runs()) for name in ("good", "bad", "poor")}


def results(cli: CommandLine, batch: str) -> dict[str, tuple[object, int]]:
    rows = cli("results", batch, "--json").json()
    return {row["id"]: (row["result"], row["retries"]) for row in rows}


def test_one_job_begins_anew(cli: CommandLine) -> None:
    """Without the jobs file and without a worker, which then finds it; given twice it is one run;
    and 'run' finds nothing changed.
    """
    file = mixed(cli, "single")
    file.rename(file.with_suffix(".away"))
    for _ in range(2):
        done = cli("retry", "single/bad")
        assert (done.code, done.out) == (0, f"single/bad: {ASKED}\n")
        assert "needs a worker" in done.err
    worked_on(cli, "single")
    assert runs(cli, "single") == {"good": 1, "bad": 2, "poor": 1}
    assert results(cli, "single") == {"good": (1, 0), "bad": (2, 1), "poor": (None, 0)}
    file.with_suffix(".away").rename(file)
    again = cli("run", file)
    assert again.out.startswith("batch single: 2 done, 1 ended without success (")
    assert cli("verify", "single/bad").code == 0
    asyncio.run(replay("single"))


def test_a_replay_tells_that_it_overtakes_one(cli: CommandLine) -> None:
    """Its batch passes a job over that runs when its place comes; a job that waits for none has
    nothing to be told of.
    """
    mixed(cli, "overtaken")
    assert cli("retry", "overtaken/bad").code == 0
    told = cli("replay", "overtaken/bad", "--from", "1")
    assert (told.code, told.err.count("'holdfast retry overtaken/bad' asks for it again")) == (0, 1)
    assert "waits in its batch" not in cli("replay", "overtaken/poor", "--from", "1").err


@pytest.mark.usefixtures("answered")
def test_what_is_refused(cli: CommandLine) -> None:
    """A job that succeeded, runs, waits or is not there is one error, exit code 2; nothing is
    started.
    """
    cli.write("good.yaml", script("finish(1)"))
    cli("run", cli.jobs("id: good, model: scripted/good.yaml", batch="refused"))
    _, process = cli.running_and_waiting("running", "slow", "next", "gate")
    refused = {
        "refused/good": "job refused/good succeeded: there is nothing to do again",
        "running/slow": "job running/slow has not ended: 'holdfast cancel' ends a job",
        "running/next": "job running/next waits for a place in its batch already",
        "refused/none": (
            "job refused/none is not in the archive: it has not begun, or there is none of that"
            " name"
        ),
    }
    for job, why in refused.items():
        assert cli("retry", job) == Done(2, "", f"error: {why}\n")
    for wrong in ([], ["refused/good", "--batch", "refused"]):
        assert cli("retry", *wrong).code == 2
    cli.write("gate", "")
    assert cli.finished(process).code == 0
    assert len(cli.archive("refused", "good").runs()) == 1


@pytest.mark.parametrize("size", [1, orders.SUBMIT_BYTES])
def test_a_batch_begins_anew_what_failed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Each that ended without success, once, also where they are so many that they come in pages;
    the others are passed over, with their number.
    """
    monkeypatch.setattr(orders, "SUBMIT_BYTES", size)
    batch = f"whole-{size}"
    mixed(cli, batch)
    done = cli("retry", "--batch", batch)
    assert (done.code, done.out) == (
        0,
        f"{batch}/bad: {ASKED}\n{batch}/poor: {ASKED}\n2 jobs of 3: retried\n"
        "1 job passed over: succeeded: there is nothing to do again\n",
    )
    worked_on(cli, batch)
    assert runs(cli, batch) == {"good": 1, "bad": 2, "poor": 2}
    assert results(cli, batch) == {"good": (1, 0), "bad": (2, 1), "poor": (2, 1)}
    nothing = cli("retry", "--batch", batch, "--json")
    assert [row["retried"] for row in nothing.json()] == [False] * 3


def test_an_expression_chooses(cli: CommandLine) -> None:
    """Of all jobs those of which it holds."""
    mixed(cli, "chosen")
    done = cli("retry", "--where", "batch=chosen and not status=failed", "--json")
    assert (done.code, done.json()) == (
        0,
        [
            {
                "job": "chosen/good",
                "retried": False,
                "reason": "succeeded: there is nothing to do again",
            },
            {"job": "chosen/poor", "retried": True, "reason": ""},
        ],
    )
    worked_on(cli, "chosen")
    assert runs(cli, "chosen") == {"good": 1, "bad": 1, "poor": 2}
    assert "there is no such job" in cli("retry", "--where", "batch=nobody").err
    done = cli("cancel", "--where", "batch=chosen and job=good", "--json")
    (row,) = done.json()
    assert done.code == 1
    assert (row["job"], row["cancelled"]) == ("chosen/good", False)
    assert row["reason"].startswith("job chosen/good does not run: it has ended")
    assert cli("send", "Go on.", "--batch", "chosen", "--where", "job=good").code == 1


def test_a_batch_that_cannot_begin_holds_up_no_other(cli: CommandLine) -> None:
    """Of several batches one is unknown to Temporal: its jobs are passed over, with the reason, and
    so is a job that cannot be read. Named alone, it is an error.
    """
    cli.write("bad.yaml", script("x = 1"))
    for name in "abc":
        jobs = (f"id: {id}, model: scripted/bad.yaml" for id in ("bad", "harmed"))
        assert cli("run", cli.jobs(*jobs, batch=f"of-{name}")).code == 1
    asyncio.run(forget("of-b"))
    (end,) = (cli.home / "archive" / "of-c" / "harmed" / "ends").iterdir()
    damage(end)
    rows = cli("retry", "--where", "batch~of- and job=bad or batch=of-c", "--json").json()
    unknown = (
        "Temporal does not know batch 'of-b' any more, so nobody knows its limits and its budget:"
        " 'holdfast run JOBS_FILE --rerun-failed' starts its jobs anew"
    )
    harmed = "cannot be read in full: run 'holdfast verify of-c/harmed'"
    assert {row["job"]: row["reason"] for row in rows} == {
        "of-a/bad": "",
        "of-b/bad": unknown,
        "of-c/bad": "",
        "of-c/harmed": harmed,
    }
    assert cli("retry", "--batch", "of-b") == Done(2, "", f"error: {unknown}\n")
    worked_on(cli, "of-a", "of-c")


def test_a_batch_keeps_its_figures(cli: CommandLine) -> None:
    """Its budget is that of the jobs file, and what was spent of it stays spent; more of it lets
    the job go on.
    """
    cli.write("bad.yaml", script("x = 1"))
    cli.write("long.py", counting(9, 0))
    jobs = ("id: bad, model: scripted/bad.yaml", "id: long, model: scripted/long.py")

    def with_turns(most: int) -> Path:
        head = f"concurrency: 1\nbudget: {{turns: {most}}}"
        return cli.jobs(*jobs, batch="figures", head=head)

    def ended() -> tuple[str, int]:
        (row,) = (one for one in cli("ls", "figures", "--json").json() if one["id"] == "long")
        return row["status"], row["turns"]

    assert cli("run", with_turns(6)).code == 1
    assert (statuses(cli, "figures")["bad"], ended()[0]) == ("failed", "budget")
    cli("retry", "figures/long")
    worked_on(cli, "figures")
    assert ended() == ("budget", 0)
    assert cli("run", with_turns(60), "--rerun-failed").code == 1
    assert ended() == ("succeeded", 10)


@pytest.mark.kill
@pytest.mark.parametrize("point", ["retry.before", "retry.after"])
def test_it_is_killed_and_given_again(cli: CommandLine, point: str) -> None:
    """Each job begins anew once, wherever the command died."""
    batch = f"killed-{point.replace('.', '-')}"
    mixed(cli, batch)
    variables = {"HOLDFAST_FAILPOINT": point}
    killed = cli.start("retry", "--batch", batch, **variables)
    assert cli.finished(killed).code == -signal.SIGKILL
    done = cli("retry", "--batch", batch)
    assert (done.code, "2 jobs of 3: retried" in done.out) == (0, True)
    worked_on(cli, batch)
    assert runs(cli, batch) == {"good": 1, "bad": 2, "poor": 2}
