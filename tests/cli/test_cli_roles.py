"""Workers with roles: what runs commands has no provider's key, what has the key runs none."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.base.roles import Role
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.server.connection import Target, connect
from runtime.worker.doctor.finding import Verdict
from runtime.worker.doctor.machine import provider_keys
from tests.cli.command_line import UNHURRIED, CommandLine, gated, script, wait_for
from tests.forks.forked import Forked
from tests.servers.program import endpoint

KEY = "sk-roles-0123456789abcdefghij"
POLICY = """
CODE = [
    "seen = view('README', lod=0)",
    "told = [here(), sh('cat /proc/self/environ').stdout, open('README').read()]",
    "finish(told)",
]

def respond(messages, number):
    return {"code": CODE[sum(m["role"] == "assistant" for m in messages)]}
"""
TOOLS = """
import os

def here() -> str:
    "Whose tool this is."
    return os.environ["MARK"]
"""
JOB = (
    "id: a, model: {{name: openai/local, api_base: '{}/v1', price: free}}, tools: ['mine:here'],"
    " workspace: {{from: ./src, write: true}}, budget: {{turns: 30, wall: 30m}}"
)


@pytest.fixture
def provider(cli: CommandLine) -> Iterator[str]:
    """The address of a model's server."""
    with endpoint(cli.write("policy.py", POLICY), cli.path / "calls") as address:
        yield address


def awaited(cli: CommandLine, batch: str, role: str, run: Forked) -> None:
    """Wait until ``ls`` says that the job waits for a role's worker."""

    def told() -> bool:
        done = cli("ls", batch, "--json")
        rows: list[dict[str, Any]] = done.json() if done.code == 0 else []
        return [row["reason"] for row in rows] == [f"waits for a worker with --roles {role}"]

    wait_for(told, f"the job waits for {role}", run)


async def who_did_what(cli: CommandLine) -> dict[int, set[str]]:
    """The activities of the job, by the processes that made them, as Temporal's history has it."""
    made: dict[int, set[str]] = defaultdict(set)
    async with connect(Target()) as connection:
        id = job_workflow_id(JobKey(batch="parted", job="a"))
        names = dict[int, str]()
        async for event in connection.client.get_workflow_handle(id).fetch_history_events():
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name:
                names[event.event_id] = scheduled.activity_type.name
            started = event.activity_task_started_event_attributes
            if started.identity:
                process = int(started.identity.partition("@")[0])
                made[process].add(names[started.scheduled_event_id])
    return made


@pytest.mark.server
@pytest.mark.sandbox
def test_who_runs_commands_has_no_key(cli: CommandLine, provider: str) -> None:
    """And who has it runs none. A role that nobody has is named by those that look."""
    cli.write("mine.py", TOOLS)
    cli.write("src/README", "read me\n")
    jobs = cli.jobs(JOB.format(provider), batch="parted")
    run = cli.start("run", jobs, "--workers", "0", "--json", HOLDFAST_ROLES="turns")
    awaited(cli, "parted", "sandboxes", run)
    hands = cli.start("worker", "--roles", "tools,sandboxes,reads", MARK="hands")
    awaited(cli, "parted", "models", run)
    assert not list((cli.path / "calls").glob("*"))
    assert run.stdout is not None
    assert any('"awaits": "role:models"' in line for line in run.stdout)
    head = cli.start("worker", HOLDFAST_ROLES="models", OPENAI_API_KEY=KEY, MARK="head")

    done = cli.finished(run)
    mark, environment, text = done.summary()["a"]["result"]
    assert (done.code, mark, text) == (0, "hands", "read me\n")
    assert KEY not in environment
    assert asyncio.run(who_did_what(cli)) == {
        run.pid: {"begin_job", "end_job"},
        hands.pid: {"open_workspace", "read_sources", "call_tool", "change_workspace", "file_call"},
        head.pid: {"call_model"},
    }
    assert cli("verify", "parted/a").code == 0


@pytest.mark.server
def test_batches_of_both_kinds(cli: CommandLine) -> None:
    """A worker with some roles leaves a batch alone that has none, and says so; one without roles
    does everything, also of a batch that has some.
    """
    cli.write("a.py", gated(cli.path / "gate"))
    whole = cli.start("run", cli.jobs(f"id: a, model: scripted/a.py, {UNHURRIED}", batch="whole"))
    wait_for(lambda: cli.turns("whole", "a") > 0, "a turn is done", whole)
    some = cli.start("worker", "--roles", "turns,models")
    assert some.stderr is not None
    said = "not working on batch whole: it was started without HOLDFAST_ROLES"
    assert any(said in line for line in some.stderr)

    cli.write("b.json", script("x = 1", "finish(open('README').read())"))
    cli.write("src/README", "read me\n")
    job = "id: b, model: scripted/b.json, workspace: ./src"
    parted = cli.start("run", cli.jobs(job, batch="both", name="b.yaml"), HOLDFAST_ROLES="turns")
    awaited(cli, "both", "reads", parted)
    cli.start("worker")
    assert cli.finished(parted).code == 0
    (cli.path / "gate").touch()
    assert cli.finished(whole).code == 0


def test_what_is_refused(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles that nobody knows, and roles beside a queue, which needs none."""
    unknown = cli("worker", "--roles", "turns,shells")
    assert (unknown.code, "expected names of roles" in unknown.err) == (2, True)
    assert cli("worker", "--roles", "tools", "--queue", "gpu").code == 2
    monkeypatch.setenv("HOLDFAST_ROLES", "everything")
    cli.write("a.json", script("finish(1)"))
    refused = cli("run", cli.jobs("id: a, model: scripted/a.json", batch="no"))
    assert (refused.code, "HOLDFAST_ROLES 'everything'" in refused.err) == (2, True)


def test_a_model_that_others_call_needs_no_key_here(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a jobs file asks for one where models are called, and there alone."""
    jobs = cli.jobs("id: a, model: openai/gpt-5", batch="keyless")
    asked = cli("run", jobs, "--dry-run")
    assert (asked.code, "no key for openai" in asked.err) == (2, True)
    monkeypatch.setenv("HOLDFAST_ROLES", "turns,reads")
    assert cli("run", jobs, "--dry-run").code == 0


def test_doctor_by_roles() -> None:
    """A key is missed where models are called, and one too many anywhere else."""
    key, hands = {"OPENAI_API_KEY": "k"}, frozenset({Role.TOOLS, Role.SANDBOXES})
    assert provider_keys({}, hands).verdict is Verdict.OK
    assert provider_keys(key, hands).verdict is Verdict.WARNING
    assert provider_keys(key, frozenset({Role.MODELS})).verdict is Verdict.OK
