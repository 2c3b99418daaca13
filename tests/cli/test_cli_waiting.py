"""``cancel`` of a job that waits for its place in its batch."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
from temporalio.client import Client

from runtime.base.home import state_home
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client import wishes
from runtime.client.control import Control
from runtime.client.wishes import BatchWish
from runtime.server.embedded import NAMESPACE, ensure_server
from tests.cli.command_line import UNHURRIED, CommandLine, Done, counting, gated, script, wait_for
from tests.workflow.stage import replayer

pytestmark = pytest.mark.server


def test_a_job_that_waits_is_cancelled_before_it_begins(cli: CommandLine) -> None:
    """It ends at once, though no place is free; nothing of it runs; the others go on; only
    --rerun-failed starts it.

    A job that runs and whose name begins like its name is left alone.
    """
    cli.write("gated.py", gated(cli.path / "gate"))
    cli.write("good.yaml", script("finish(2)"))
    jobs = [
        f"id: fix-2, model: scripted/gated.py, {UNHURRIED}",
        "id: fix, model: scripted/good.yaml",
        "id: last, model: scripted/good.yaml",
    ]
    file = cli.jobs(*jobs, batch="queue", head="concurrency: 1")
    process = cli.start("run", file)
    wait_for(lambda: cli.turns("queue", "fix-2") >= 1, "a turn of the first job", process)
    cancelled = cli("cancel", "queue/fix", "--json")
    assert (cancelled.code, cancelled.json()) == (0, {"job": "queue/fix", "cancelled": True})
    # Its run goes on for a moment when its end is archived: it has ended when that is told.
    told = "queue/fix  cancelled after 0 turns  0 tokens  $0.0000: cancelled before it began\n"
    assert process.stdout is not None
    assert told in process.stdout
    ended = cli.archive("queue", "fix")
    assert ended.end_without_calls() is not None
    assert cli.archive("queue", "fix-2").end(cli.archive("queue", "fix-2").runs()[0]) is None
    again = cli("cancel", "queue/fix")
    assert (again.code, "job queue/fix does not run: it has ended" in again.err) == (2, True)
    cli.write("gate", "")
    done = cli.finished(process)
    assert done.code == 1
    assert "1 cancelled" in done.out and "2 succeeded" in done.out
    rows = {row["id"]: row for row in json.loads(cli("ls", "queue", "--json").out)}
    assert [(name, row["status"]) for name, row in rows.items()] == [
        ("fix", "cancelled"),
        ("fix-2", "succeeded"),
        ("last", "succeeded"),
    ]
    assert (rows["fix"]["reason"], rows["fix"]["turns"]) == ("cancelled before it began", 0)
    assert (
        cli("log", "queue/fix").out
        == "queue/fix: no turn has begun\nend: cancelled: cancelled before it began\n"
    )
    assert ended.runs() == [] and ended.definition() is not None
    assert [cli("verify", f"queue/{name}").code for name in ("fix", "fix-2", "last")] == [0, 0, 0]
    assert "3 succeeded" not in cli("run", file).out and ended.runs() == []
    anew = cli("run", file, "--rerun-failed")
    assert (anew.code, "queue/fix  succeeded after 1 turn" in anew.out) == (0, True)
    assert cli("ls", "queue", "--json").json()[0]["status"] == "succeeded"
    asyncio.run(_replay("queue"))


def test_a_wish_is_kept_until_a_worker_comes(cli: CommandLine) -> None:
    """The batch is interrupted, and nobody answers for it; a job that it was never given is refused
    all the same. What waits is not to be begun anew.
    """
    file, process = cli.running_and_waiting("later", "a", "b", "gate2")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    refused = cli("cancel", "later/c")
    assert (refused.code, "job later/c does not run" in refused.err) == (2, True)
    waits = cli("retry", "later/b")
    assert waits == Done(2, "", "error: job later/b waits for a place in its batch already\n")
    assert "job later/c is not in the archive" in cli("retry", "later/c").err
    cancelled = cli("cancel", "later/b")
    assert (cancelled.code, cancelled.out) == (
        0,
        "later/b: the job is asked to stop; it ends as cancelled as soon as a worker has it\n",
    )
    cli.write("gate2", "")
    done = cli("run", file)
    assert done.code == 1
    assert "later/a  succeeded" in done.out
    assert "later/b  cancelled after 0 turns" in done.out


@pytest.mark.usefixtures("answered")
def test_a_cancelled_batch_starts_no_job_of_a_page(cli: CommandLine) -> None:
    """Jobs of pages that the batch has not read are queued for ``--where``, and ``--batch`` leaves
    none of them to start: each ends as cancelled, and ``run`` ends.
    """
    cli.write("gated.py", gated(cli.path / "gate3"))
    cli.write("good.yaml", script("finish(2)"))
    # Too much for one payload, so that they come in pages.
    goal = "x" * 150_000
    waiting = [f"j{n}" for n in range(8)]
    file = cli.jobs(
        f"id: first, model: scripted/gated.py, {UNHURRIED}",
        *(f"id: {id}, model: scripted/good.yaml" for id in waiting),
        batch="paged",
        head="concurrency: 1",
    )
    file.write_text(file.read_text().replace("goal: g, id: j", f"goal: {goal}, id: j"))
    process = cli.start("run", file)
    wait_for(lambda: cli.turns("paged", "first") >= 1, "a turn of the first job", process)
    # A worker that has to replay the batch first may refuse to tell what waits, and says no more.
    last = list[Any]()

    def is_chosen() -> bool:
        last[:] = cli("cancel", "--where", "status=queued and job=j7", "--json").json()
        return bool(last)

    wait_for(is_chosen, "the batch tells what waits", process)
    assert last == [{"job": "paged/j7", "cancelled": True, "reason": ""}]
    wait_for(lambda: cli.archive("paged", "j7").end_without_calls() is not None, "its end", process)
    assert cli.archive("paged", "j6").definition() is None
    both = cli("cancel", "--batch", "paged", "--json")
    assert [row["job"] for row in both.json()] == [
        "paged/first",
        *(f"paged/{id}" for id in waiting[:-1]),
    ]
    assert "'paged' is asked, too: its jobs that wait for their places end as cancelled" in both.err
    # The gate stays shut: a call that came back with the end before the cancel is heard counts.
    done = cli.finished(process)
    assert (done.code, "9 cancelled" in done.out) == (1, True)
    rows = [json.loads(line) for line in cli("results", "paged", "--jsonl").out.splitlines()]
    assert {row["id"]: row["reason"] for row in rows} == {
        "first": "cancelled",
        **dict.fromkeys(waiting, "cancelled before it began"),
    }
    again = cli("cancel", "--batch", "paged")
    assert (again.code, "no job of it is open" in again.err) == (0, True)


@pytest.mark.parametrize("command", ["cancel", "send", "retry"])
def test_a_batch_that_nobody_knows_is_bad_input(cli: CommandLine, command: str) -> None:
    """Its name is mistyped, as a rule; who cancels by a program must hear of it."""
    done = cli(command, "--batch", "mistyped", *(["hello"] if command == "send" else []))
    assert (done.code, done.out) == (2, "")
    assert "no job of a batch 'mistyped' has begun" in done.err


@pytest.mark.usefixtures("answered")
def test_a_batch_that_ends_while_it_is_looked_at_is_not_said_to_be_cancelled(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that waited when the jobs were listed has run: nobody has heard the wish."""
    _, process = cli.running_and_waiting("ends", "first", "next", "gate")
    hold = wishes.hold_batch

    async def held(control: Control, batch: str, wish: BatchWish) -> None:
        cli.write("gate", "")
        assert (await asyncio.to_thread(cli.finished, process)).code == 0
        await hold(control, batch, wish)

    monkeypatch.setattr(wishes, "hold_batch", held)
    done = cli("cancel", "--batch", "ends", "--json")
    assert [row["job"] for row in done.json()] == ["ends/first", "ends/next"]
    assert [row["cancelled"] for row in done.json()] == [False, False]


def test_a_job_that_nobody_knows_is_not_cancelled(cli: CommandLine) -> None:
    """The name of no waiting job is refused as before."""
    cli.write("slow.py", counting(3, 0.3))
    process = cli.start("run", cli.jobs("id: a, model: scripted/slow.py", batch="known"))
    wait_for(lambda: cli.turns("known", "a") >= 1, "a turn", process)
    refused = cli("cancel", "known/b")
    assert (refused.code, "job known/b does not run" in refused.err) == (2, True)
    assert cli.finished(process).code == 0


async def _replay(batch: str) -> None:
    """Replay all runs of the batch's workflow."""
    server = await ensure_server(state_home())
    client = await Client.connect(server.address, namespace=NAMESPACE)
    query = f"WorkflowId = '{batch_workflow_id(batch)}'"
    runs = [run async for run in client.list_workflows(query)]
    assert len(runs) == 2
    for run in runs:
        await replayer(state_home()).replay_workflow(
            await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        )
