"""``holdfast init`` and ``holdfast doctor``, against a real server."""

import asyncio
import base64
import hashlib
import sysconfig
import time
import uuid
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.server.preparing import Done, queue_limits
from runtime.server.target import Target
from runtime.worker.doctor import machine
from runtime.worker.doctor.finding import Verdict
from runtime.worker.doctor.server import server
from tests.cli.command_line import CommandLine
from tests.servers.temporal_server import START

ATTRIBUTES = ["Batch", "Job", "Status", "Model", "Turns", "CostUsd"]


def address(cli: CommandLine) -> str:
    """Where the kept server is, for commands that take it for any server."""
    return str(cli("status", "--json").json()["server"]["address"])


def verdicts(cli: CommandLine, *arguments: str) -> dict[str, str]:
    done = cli("doctor", "--json", *arguments)
    told = done.json()
    assert done.code == (0 if told["healthy"] else 1)
    return {finding["name"]: finding["verdict"] for finding in told["findings"]}


@pytest.fixture
def namespace() -> str:
    return f"team-{uuid.uuid4().hex[:8]}"


def test_init_makes_a_namespace_once(cli: CommandLine, namespace: str) -> None:
    """The first time all is made, the second time all is kept; a retention that is given is set."""
    at = ("--address", address(cli), "--namespace", namespace)
    first = cli("init", *at, "--json")
    assert first.code == 0
    names = [f"namespace {namespace}", *(f"search attribute Holdfast{name}" for name in ATTRIBUTES)]
    limits = ("queue limits", "kept")
    told = [(one["name"], one["done"]) for one in first.json()]
    assert told == [*((n, "made") for n in names), limits]
    again = cli("init", *at, "--json")
    told = [(one["name"], one["done"]) for one in again.json()]
    assert told == [*((n, "kept") for n in names), limits]
    assert again.json()[0]["about"] == "histories of closed runs are kept 30d"
    longer = cli("init", *at, "--retention", "40d")
    assert longer.out.splitlines()[0] == (
        f"changed  namespace {namespace}: histories of closed runs are kept 40d, and were 30d"
    )
    assert longer.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no server is named"),
        (("--address", "x:1", "--retention", "long"), "expected a duration"),
        (("--address", "x:1", "--retention", "3h"), "for a day at least"),
    ],
)
def test_init_refuses_what_it_cannot_do(
    own_cli: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    """Without a server, or with a retention that is none, nothing is asked of anybody."""
    done = own_cli("init", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_doctor_tells_what_is_missing_until_init_was_given(
    cli: CommandLine, namespace: str
) -> None:
    """A server without the namespace fails, and the machine is looked at all the same; 'init' is
    the advice, and cures it.
    """
    at = ("--address", address(cli), "--namespace", namespace)
    before = cli("doctor", *at)
    assert before.code == 1
    last = before.out.splitlines()[-1]
    assert last.startswith("failed   server ")
    assert last.endswith("'holdfast init' with the same options makes it")
    assert cli("init", *at).code == 0
    found = verdicts(cli, *at)
    assert {
        name: found[name] for name in ("store", "server", "namespace", "search")
    } == dict.fromkeys(("store", "server", "namespace", "search"), "ok")
    assert (found["key"], found["interpreter"], found["clock"]) == ("ok", "ok", "ok")


def test_doctor_sees_files_that_others_may_read(own_cli: CommandLine) -> None:
    """A key or a state directory that is open to others fails, and the command says what to do."""
    assert verdicts(own_cli)["key"] == "ok"
    (own_cli.home / "key").chmod(0o644)
    own_cli.home.chmod(0o755)
    done = own_cli("doctor")
    assert done.code == 1
    lines = {line.split()[1]: line for line in done.out.splitlines()}
    assert lines["files"].split()[0] == lines["key"].split()[0] == "failed"
    assert f"chmod -R go= {own_cli.home}" in lines["files"]
    assert "chmod 600" in lines["key"]


def test_a_clock_that_jumped_an_hour_is_found(cli: CommandLine) -> None:
    """A machine whose clock is an hour from the server's, either way, fails."""
    for hour in (3600.0, -3600.0):

        def clock(hour: float = hour) -> float:
            return time.time() + hour

        findings = asyncio.run(server(Target(), clock))
        assert {finding.name: finding.verdict for finding in findings}["clock"] is Verdict.FAILED


def test_packages_that_are_too_old_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed is compared with what the distribution requires."""
    assert machine.packages().verdict is Verdict.OK
    wanted = ["pydantic>=99", "no-such-package>=1", "psutil; sys_platform == 'plan9'"]
    monkeypatch.setattr(machine, "requires", lambda _: wanted)
    seen = machine.packages()
    assert seen.verdict is Verdict.FAILED
    assert "pydantic is " in seen.seen and "no-such-package is not installed" in seen.seen
    assert "psutil" not in seen.seen
    assert seen.advice.endswith("pip install -c requirements.lock -e .")


def test_files_that_another_package_replaced_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed without -e, its packages lie beside others', which may be called the same."""
    site, about = tmp_path, tmp_path / "holdfast-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.4\nName: holdfast\nVersion: 0.1.0\n")
    noted = []
    for name in ("workflows/__init__.py", "workflows/steps.py"):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())
        noted.append(f"{name},sha256={digest.rstrip(b'=').decode()},1")
    unknown = ["workflows/__pycache__/steps.cpython-311.pyc,,", "holdfast-0.1.0.dist-info/RECORD,,"]
    (about / "RECORD").write_text("\n".join([*noted, *unknown]))
    monkeypatch.setattr(machine, "distribution", lambda _: Distribution.at(about))
    assert machine.packages().verdict is Verdict.OK
    (site / "workflows/__init__.py").write_text("theirs")
    seen = machine.packages()
    told = "1 file of Holdfast not as installed, the first workflows/__init__.py"
    assert (seen.verdict, seen.seen) == (Verdict.FAILED, told)
    (site / "workflows/steps.py").unlink()
    assert machine.packages().seen.startswith("2 files of Holdfast not as installed")


def test_a_python_that_is_not_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the distribution's own words, as pip does before it installs."""
    monkeypatch.setattr(machine.sys, "version_info", (3, 10, 9, "final", 0))
    found = machine.packages()
    assert (found.verdict, found.seen) == (Verdict.FAILED, "Python 3.10.9")
    assert ">=3.11" in found.advice


def test_keys_and_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is a warning, and so is little room; too little fails."""
    assert machine.provider_keys({}).verdict is Verdict.WARNING
    assert machine.provider_keys({"OPENAI_API_KEY": "k"}).seen == "keys: OPENAI_API_KEY"
    there = {"archive": tmp_path / "not" / "yet"}
    assert machine.room(there).verdict in {Verdict.OK, Verdict.WARNING}
    monkeypatch.setattr(machine, "TOO_LITTLE_BYTES", 1 << 62)
    assert machine.room(there).verdict is Verdict.FAILED


@pytest.mark.server
async def test_a_server_without_limits_is_told_by_init() -> None:
    """One that keeps no rates of task queues (Temporal's test server) refuses nothing by that: the
    line says that 'limits:' do not hold.
    """
    binary = Path(sysconfig.get_path("scripts")) / "temporal-test-server"
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=str(binary), test_server_startup_timeout=START
    ) as environment:
        about = await queue_limits(environment.client)
    assert (about.name, about.done) == ("queue limits", Done.ABSENT)
    assert about.about.startswith("'limits:' of jobs files do not hold here: ")
