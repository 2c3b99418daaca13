"""Several ``holdfast run`` at once, and many jobs in one batch."""

import asyncio
from collections.abc import Iterator

import pytest
from temporalio.api.enums.v1 import EventType

from runtime.base.home import state_home
from runtime.base.workflow_ids import batch_workflow_id
from runtime.server.embedded import NAMESPACE, ensure_server
from runtime.server.process import is_alive
from tests.cli.command_line import UNHURRIED, CommandLine, counting, gated, script, wait_for

pytestmark = pytest.mark.server


def test_the_same_file_twice_at_once(cli: CommandLine) -> None:
    """Both commands follow the same jobs to their ends, each job's run and turn is one; a third
    that defines them otherwise meanwhile exits 2 and says what differs.
    """
    cli.write("slow.py", counting(8, 0.3))
    jobs = [f"id: j{n}, model: scripted/slow.py" for n in range(3)]
    file = cli.jobs(*jobs, batch="both", head="concurrency: 2")
    processes = [cli.start("run", file, "--json") for _ in range(2)]
    wait_for(lambda: cli.turns("both", "j0") >= 1, "a turn", processes[0])
    changed = cli.jobs(f"{jobs[0]}, budget: {{turns: 9}}", batch="both", name="changed.yaml")
    refused = cli("run", changed)
    assert refused.code == 2
    assert "job 'j0' was started with another definition: budget.turns: 30 -> 9" in refused.err
    done = [cli.finished(process) for process in processes]
    assert [(one.code, one.err) for one in done] == [(0, "")] * 2
    assert done[0].summary() == done[1].summary()
    for n in range(3):
        archive = cli.archive("both", f"j{n}")
        (run,) = archive.runs()
        assert [len(archive.attempts(run, step.turn)) for step in archive.steps()] == [1] * 9


def test_two_files_share_a_server_that_ends_with_the_last(own_cli: CommandLine) -> None:
    """Two batches at once on one embedded server; it has stopped when both commands have ended."""
    own_cli.write("slow.py", gated(own_cli.path / "gate"))
    batches = ("one", "two")
    job = f"id: a, model: scripted/slow.py, {UNHURRIED}"
    files = [own_cli.jobs(job, batch=name, name=f"{name}.yaml") for name in batches]
    processes = [own_cli.start("run", file) for file in files]
    for name, process in zip(batches, processes, strict=True):
        wait_for(lambda name=name: own_cli.turns(name, "a") >= 1, f"a turn of {name}", process)
    own_cli.write("gate", "")
    done = [own_cli.finished(process) for process in processes]
    assert [(one.code, one.err) for one in done] == [(0, "")] * 2
    addresses = {one.out.splitlines()[0].partition("embedded server ")[2] for one in done}
    assert len(addresses) == 1
    assert not is_alive(state_home())


def test_concurrency(cli: CommandLine) -> None:
    """40 jobs, never more than 5 open, counted from the batch's history."""
    cli.write("good.yaml", script("finish(1)"))
    jobs = [f"id: j{n}, model: scripted/good.yaml" for n in range(40)]
    done = cli("run", cli.jobs(*jobs, batch="forty", head="concurrency: 5"))
    assert done.code == 0
    open_at_once = list(asyncio.run(_open_jobs("forty")))
    assert (max(open_at_once), open_at_once[-1], len(open_at_once)) == (5, 0, 80)


async def _open_jobs(batch: str) -> Iterator[int]:
    """How many jobs are open, after each start and each end."""
    from temporalio.client import Client

    server = await ensure_server(state_home())
    client = await Client.connect(server.address, namespace=NAMESPACE)
    history = await client.get_workflow_handle(batch_workflow_id(batch)).fetch_history()
    change = {
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: 1,
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: -1,
    }
    steps = [change[event.event_type] for event in history.events if event.event_type in change]
    return iter([sum(steps[: n + 1]) for n in range(len(steps))])
