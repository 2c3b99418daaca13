"""Several ``holdfast run`` at once, and many jobs in one batch."""

import asyncio
from collections.abc import Iterator

import pytest
from temporalio.api.enums.v1 import EventType

from runtime.home import state_home
from runtime.local import NAMESPACE, ensure_server
from runtime.local_process import is_alive
from tests.cli.command_line import CommandLine, counting, script, wait_for
from workflows.messages import batch_workflow_id

pytestmark = pytest.mark.server


def test_the_same_file_twice_at_once(cli: CommandLine) -> None:
    """Both commands follow the same jobs to their ends; no job has a second run, no turn a second attempt."""
    cli.write("slow.py", counting(4, 0.2))
    jobs = [f"id: j{n}, model: scripted/slow.py" for n in range(4)]
    file = cli.jobs(*jobs, batch="both", head="concurrency: 2")
    processes = [cli.start("run", file, "--json") for _ in range(2)]
    done = [cli.finished(process) for process in processes]
    assert [(one.code, one.err) for one in done] == [(0, "")] * 2
    assert done[0].summary() == done[1].summary()
    for n in range(4):
        archive = cli.archive("both", f"j{n}")
        (run,) = archive.runs()
        assert [len(archive.attempts(run, step.turn)) for step in archive.steps()] == [1] * 5


def test_a_definition_that_runs_elsewhere_is_not_changed(cli: CommandLine) -> None:
    """While a job runs, a command that defines it otherwise exits 2 and says what differs; the job goes on."""
    cli.write("slow.py", counting(6, 0.4))
    file = cli.jobs("id: a, model: scripted/slow.py", batch="elsewhere")
    process = cli.start("run", file)
    wait_for(lambda: cli.turns("elsewhere", "a") >= 1, "a turn", process)
    other = cli.jobs("id: a, model: scripted/slow.py, budget: {turns: 9}", batch="elsewhere", name="other.yaml")
    refused = cli("run", other)
    assert (refused.code, "budget.turns: 30 -> 9" in refused.err) == (2, True)
    done = cli.finished(process)
    assert (done.code, "elsewhere/a: 6" in done.out.splitlines()) == (0, True)


def test_two_files_share_a_server_that_ends_with_the_last(own_cli: CommandLine) -> None:
    """Two batches at once on one embedded server; it has stopped when both commands have ended."""
    own_cli.write("slow.py", counting(3, 0.2))
    files = [own_cli.jobs("id: a, model: scripted/slow.py", batch=name, name=f"{name}.yaml") for name in ("one", "two")]
    done = [own_cli.finished(process) for process in [own_cli.start("run", file) for file in files]]
    assert [(one.code, one.err) for one in done] == [(0, "")] * 2
    addresses = {one.out.splitlines()[0].partition("embedded server ")[2] for one in done}
    assert len(addresses) == 1
    assert not is_alive(state_home())


def test_an_interrupted_batch_is_left_alone_by_others(cli: CommandLine) -> None:
    """A run works on its own batch: jobs of another one that was interrupted do not go on with it."""
    cli.write("slow.py", counting(6, 0.3))
    process = cli.start("run", cli.jobs("id: a, model: scripted/slow.py", batch="left", name="left.yaml"))
    wait_for(lambda: cli.turns("left", "a") >= 1, "a turn", process)
    process.terminate()
    cli.finished(process)
    taken = cli.turns("left", "a")
    assert cli("run", cli.jobs("id: a, model: scripted/slow.py", batch="mine", name="mine.yaml")).code == 0
    assert cli.turns("left", "a") == taken


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
